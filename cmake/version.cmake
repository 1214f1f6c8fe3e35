# basin_version(), basin_header_digest() and basin_tasks_header_digest(): bindings that copied the
# headers at another time find it out (python/declare.py, python/basin/_engine/library.py). CMake
# itself writes the C files, by running this file as a script.

# Adds a source to the list `variable` that defines FUNCTION, which is declared in HEADER and returns
# the digest of the headers that follow; of the engine, its version as well.
function(basin_embed_digest variable function header)
    set(output ${CMAKE_BINARY_DIR}/embedded/${function}.c)
    add_custom_command(OUTPUT ${output}
        COMMAND ${CMAKE_COMMAND} -D OUTPUT=${output} -D FUNCTION=${function} -D HEADER=${header}
            -D "HEADERS=${ARGN}" -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/version.cmake
        DEPENDS ${ARGN} cmake/version.cmake
        COMMENT "Writing ${function}" VERBATIM)
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
    if(HEADER STREQUAL "basin/version.h")
        set(version "const char *basin_version(void) { return BASIN_VERSION_STRING; }\n")
    endif()
    file(WRITE ${OUTPUT} "#include <${HEADER}>\n\n" "${version}"
        "const char *${FUNCTION}(void) { return \"${digest}\"; }\n")
endif()
