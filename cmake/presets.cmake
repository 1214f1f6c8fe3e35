# The presets of share/basin/presets as one C file, so that nothing is read from disk at run time; a
# folder is a task, so this is also the list of tasks.
# basin_embed_presets(VARIABLE) appends it to VARIABLE. CMake itself writes it, by running this file
# as a script. Per task, "default" comes first.

function(basin_embed_presets variable)
    file(GLOB presets CONFIGURE_DEPENDS share/basin/presets/*/*.json)
    set(output ${CMAKE_BINARY_DIR}/embedded/basin_presets.c)
    add_custom_command(OUTPUT ${output}
        COMMAND ${CMAKE_COMMAND} -D FOLDER=${CMAKE_CURRENT_SOURCE_DIR}/share/basin/presets
            -D OUTPUT=${output} -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/presets.cmake
        DEPENDS ${presets} cmake/presets.cmake
        COMMENT "Embedding presets" VERBATIM)
    set(${variable} ${${variable}} ${output} PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE AND DEFINED FOLDER)
    set(arrays "")
    set(lists "")
    file(GLOB folders RELATIVE ${FOLDER} ${FOLDER}/*)
    list(REMOVE_ITEM folders "${WITHOUT}") # a task that scripts/explorer leaves out
    foreach(task IN LISTS folders)
        set(names "")
        set(texts "")
        file(GLOB files RELATIVE ${FOLDER}/${task} ${FOLDER}/${task}/*.json)
        list(REMOVE_ITEM files default.json)
        foreach(file default.json ${files})
            file(READ ${FOLDER}/${task}/${file} json)
            string(REGEX REPLACE "[ \n]+" " " json "${json}")
            string(REPLACE "\\" "\\\\" json "${json}")
            string(REPLACE "\"" "\\\"" json "${json}")
            string(REGEX REPLACE "\\.json$" "" name ${file})
            string(APPEND names "    \"${name}\",\n")
            string(APPEND texts "    \"${json}\",\n")
        endforeach()
        string(APPEND arrays "extern const basin_task_settings basin_${task}_task;\n"
            "static const char *const names_${task}[] = {\n${names}    NULL,\n};\n"
            "static const char *const texts_${task}[] = {\n${texts}    NULL,\n};\n")
        string(APPEND lists "    {\"${task}\", names_${task}, texts_${task}, &basin_${task}_task},\n")
    endforeach()
    file(WRITE ${OUTPUT} "#include \"tasks/common/run/settings.h\"\n\n${arrays}"
        "const basin_preset_list basin_presets[] = {\n${lists}    {NULL, NULL, NULL, NULL},\n};\n")
endif()
