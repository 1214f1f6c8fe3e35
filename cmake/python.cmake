# What the Python package carries (pyproject.toml, `make wheel`): the shared libraries, the CUDA
# module where it is built, and the declarations for cffi, made from the headers. Only with
# BASIN_PYTHON; the rest of the build does not know Python.

option(BASIN_PYTHON "Make what the Python package carries" OFF)
if(NOT BASIN_PYTHON)
    return()
endif()

find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(declared ${CMAKE_BINARY_DIR}/declared)
add_custom_command(OUTPUT ${declared}.stamp
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/python/declare.py
        ${CMAKE_CURRENT_SOURCE_DIR}/include ${declared} ${CMAKE_C_COMPILER}
        $<TARGET_FILE:basin_shared> $<TARGET_FILE:basin_tasks_shared>
    COMMAND ${CMAKE_COMMAND} -E touch ${declared}.stamp
    DEPENDS basin_tasks_shared python/declare.py ${BASIN_HEADERS}
    COMMENT "Declaring the headers for cffi" VERBATIM)
add_custom_target(basin_python DEPENDS basin_tasks_shared ${declared}.stamp)
install(DIRECTORY ${declared}/ DESTINATION basin COMPONENT python)

# Links have no place in a wheel: the files themselves, under the names that the loader asks for. They
# are side by side, as in the build.
foreach(library basin_shared basin_tasks_shared)
    install(FILES $<TARGET_FILE:${library}> DESTINATION basin/lib COMPONENT python
        RENAME $<TARGET_SONAME_FILE_NAME:${library}>)
    set_target_properties(${library} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH $ORIGIN)
endforeach()
if(TARGET basin_cuda)
    add_dependencies(basin_python basin_cuda)
    install(TARGETS basin_cuda LIBRARY DESTINATION basin/lib COMPONENT python)
endif()

# What comes with Basin, where src/tasks/common/models.c looks: beside the folder of the libraries.
file(GLOB models CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/models/*.safetensors)
install(FILES ${models} DESTINATION basin/models COMPONENT python)

# Models of graphs need eigenvectors, and pictures may be WebP: what is opened for these lies beside
# libbasin, where src/base/library.c looks first. auditwheel adds what they need. Debian's own LAPACK
# is preferred, wherever the alternatives point: OpenBLAS would be 21 MB.
get_property(definitions SOURCE src/base/library.c PROPERTY COMPILE_DEFINITIONS)
foreach(name LAPACK WEBP)
    string(REGEX MATCH "BASIN_SONAME_${name}=\"([^\"]+)\"" _ "${definitions}")
    set(soname_${name} ${CMAKE_MATCH_1})
    find_library(BASIN_CARRIED_${name} ${soname_${name}}
        HINTS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/lapack)
    if(BASIN_CARRIED_${name})
        file(REAL_PATH ${BASIN_CARRIED_${name}} file)
        install(FILES ${file} DESTINATION basin/lib COMPONENT python RENAME ${soname_${name}})
    else()
        message(STATUS "Python package: without ${name}")
    endif()
endforeach()
