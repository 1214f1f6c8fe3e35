# basin_version() and basin_header_digest(): bindings that copied the headers at another time find it
# out (python/declare.py, python/basin/_library.py). CMake itself writes the C
# file, by running this file as a script.

function(basin_embed_version variable)
    set(output ${CMAKE_BINARY_DIR}/embedded/basin_version.c)
    add_custom_command(OUTPUT ${output}
        COMMAND ${CMAKE_COMMAND} -D OUTPUT=${output} -D "HEADERS=${ARGN}"
            -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/version.cmake
        DEPENDS ${ARGN} cmake/version.cmake
        COMMENT "Writing the version" VERBATIM)
    set(${variable} ${${variable}} ${output} PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE AND DEFINED HEADERS)
    foreach(header IN LISTS HEADERS)
        if(NOT header MATCHES "/version\\.h$") # which a patch changes
            file(SHA256 ${header} digest)
            string(APPEND digests ${digest})
        endif()
    endforeach()
    string(SHA256 digest "${digests}")
    file(WRITE ${OUTPUT} "#include <basin/version.h>\n\n"
        "const char *basin_version(void) { return BASIN_VERSION_STRING; }\n"
        "int basin_version_number(void) { return BASIN_VERSION_NUMBER; }\n"
        "const char *basin_header_digest(void) { return \"${digest}\"; }\n")
endif()
