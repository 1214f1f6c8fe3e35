# Which symbols a shared library shows, under which version, and its SONAME; docs/abi.md says what
# is promised of them.

# What the headers declare with BASIN_API gets the version `node`; all else is hidden.
function(basin_version_symbols target node abi)
    set(map ${CMAKE_BINARY_DIR}/${target}.map)
    set(scripts
        ${CMAKE_CURRENT_SOURCE_DIR}/cmake/version-map ${CMAKE_CURRENT_SOURCE_DIR}/cmake/declared)
    add_custom_command(OUTPUT ${map} VERBATIM
        COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/cmake/version-map ${map} ${node} ${ARGN}
        DEPENDS ${ARGN} ${scripts})
    target_sources(${target} PRIVATE ${map})
    # Calls within a library stay within: nothing stands between a function and its caller.
    target_link_options(${target} PRIVATE -Wl,--version-script=${map} -Wl,-Bsymbolic)
    # Whatever is missing shows here and not at a user's. (Sanitizers' functions are the program's.)
    if(NOT BASIN_SANITIZE AND NOT BASIN_FUZZ)
        target_link_options(${target} PRIVATE -Wl,-z,defs)
    endif()
    set_target_properties(${target} PROPERTIES
        LINK_DEPENDS ${map} SOVERSION ${abi})
endfunction()
