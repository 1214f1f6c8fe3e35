# Man pages and completions: the program prints completions and its manual in Markdown from its own
# tables, and manual.awk makes man pages of the manual. So the program must be able to run here; where
# it cannot (cross-compiling without an emulator), they are left out.

if(NOT TARGET basin_program OR BASIN_FUZZ OR
   (CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR))
    return()
endif()

set(manual_dir ${CMAKE_BINARY_DIR}/manual)
set(print_help ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:basin_program> help)
add_custom_command(OUTPUT ${manual_dir}/man1/basin.1
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${manual_dir}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${manual_dir}/man1
    COMMAND ${print_help} --markdown > ${manual_dir}/commands.md
    COMMAND awk -v version=${PROJECT_VERSION} -v folder=${manual_dir}/man1
            -f ${CMAKE_CURRENT_LIST_DIR}/manual.awk ${manual_dir}/commands.md
    COMMAND ${print_help} --completion bash > ${manual_dir}/basin.bash
    COMMAND ${print_help} --completion zsh > ${manual_dir}/_basin
    COMMAND ${print_help} --completion fish > ${manual_dir}/basin.fish
    DEPENDS basin_program ${CMAKE_CURRENT_LIST_DIR}/manual.awk
    COMMENT "Printing man pages and completions"
    VERBATIM)
add_custom_target(manual ALL DEPENDS ${manual_dir}/man1/basin.1)
add_dependencies(product manual)

install(DIRECTORY ${manual_dir}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${manual_dir}/basin.bash RENAME basin
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions)
install(FILES ${manual_dir}/_basin DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/zsh/site-functions)
install(FILES ${manual_dir}/basin.fish
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/fish/vendor_completions.d)
