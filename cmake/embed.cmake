# Text files that the library carries within: each becomes a C file with an array of its lines.
# basin_embed(VARIABLE FILE NAME ...) appends the C files to VARIABLE; NAME is the array's. CMake
# itself writes them, by running this file as a script, so that a build needs no other tool.

function(basin_embed variable)
    set(sources ${${variable}})
    while(ARGN)
        list(POP_FRONT ARGN file name)
        set(output ${CMAKE_BINARY_DIR}/embedded/${name}.c)
        add_custom_command(OUTPUT ${output}
            COMMAND ${CMAKE_COMMAND} -D INPUT=${CMAKE_CURRENT_SOURCE_DIR}/${file} -D NAME=${name}
                -D OUTPUT=${output} -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed.cmake
            DEPENDS ${file} cmake/embed.cmake
            COMMENT "Embedding ${file}" VERBATIM)
        list(APPEND sources ${output})
    endwhile()
    set(${variable} ${sources} PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE AND DEFINED INPUT)
    file(READ ${INPUT} text)
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "\n" "\\n\",\n    \"" text "${text}")
    file(WRITE ${OUTPUT} "#include <stddef.h>\n\n"
        "extern const char *const ${NAME}[];\n"
        "const char *const ${NAME}[] = {\n    \"${text}\",\n    NULL,\n};\n")
endif()
