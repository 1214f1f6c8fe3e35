# What `make install` puts where. Two ways for another project to find it: pkg-config (basin.pc,
# basin-tasks.pc) and find_package(Basin), which gives basin::basin and basin::tasks (shared),
# basin::static and basin::tasks_static. The files of the tasks are separate, so that a package may
# have the engine without them.

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Basin)

set_target_properties(basin_shared PROPERTIES EXPORT_NAME basin)
set_target_properties(basin_static PROPERTIES EXPORT_NAME static)
set_target_properties(basin_tasks_shared PROPERTIES EXPORT_NAME tasks)
set_target_properties(basin_tasks_static PROPERTIES EXPORT_NAME tasks_static)

install(DIRECTORY include/basin DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h)
install(TARGETS basin_shared EXPORT BasinTargets)
install(TARGETS basin_static EXPORT BasinStaticTargets)
install(TARGETS basin_tasks_shared EXPORT BasinTasksTargets)
install(TARGETS basin_tasks_static EXPORT BasinTasksStaticTargets)
# Scripts that convert data, and presets to copy from; the rest of share/basin is in the program.
install(DIRECTORY share/basin/ DESTINATION ${CMAKE_INSTALL_DATADIR}/basin
    FILES_MATCHING PATTERN *.py PATTERN *.json)
# Models to begin with; src/tasks/common/models.c looks for them there.
install(DIRECTORY models/ DESTINATION ${CMAKE_INSTALL_DATADIR}/basin/models OPTIONAL
    FILES_MATCHING PATTERN *.safetensors PATTERN *.md)
if(TARGET basin_program)
    install(TARGETS basin_program)
endif()

foreach(set BasinTargets BasinStaticTargets BasinTasksTargets BasinTasksStaticTargets)
    install(EXPORT ${set} NAMESPACE basin:: DESTINATION ${package_dir})
endforeach()
configure_package_config_file(cmake/BasinConfig.cmake.in BasinConfig.cmake
    INSTALL_DESTINATION ${package_dir})
# From 1.0 on, what a program uses of the engine is in every later version (docs/abi.md).
if(PROJECT_VERSION VERSION_LESS 1)
    set(compatibility SameMinorVersion)
else()
    set(compatibility SameMajorVersion)
endif()
write_basic_package_version_file(BasinConfigVersion.cmake COMPATIBILITY ${compatibility})
install(FILES ${CMAKE_BINARY_DIR}/BasinConfig.cmake ${CMAKE_BINARY_DIR}/BasinConfigVersion.cmake
    DESTINATION ${package_dir})

# Relative to the .pc files themselves, so that an installed tree may be moved or staged under
# DESTDIR.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
    BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE BASIN_PC_PREFIX)
foreach(name basin basin-tasks)
    configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
