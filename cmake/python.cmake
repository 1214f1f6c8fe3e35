# What the Python package carries (pyproject.toml, `make wheel`): the shared library, the CUDA
# module where it is built, and the declarations for cffi, made from the headers. Only with
# BASIN_PYTHON; the rest of the build does not know Python.

option(BASIN_PYTHON "Make what the Python package carries" OFF)
if(NOT BASIN_PYTHON)
    return()
endif()

find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(declared ${CMAKE_BINARY_DIR}/_declarations.py ${CMAKE_BINARY_DIR}/_keywords.py)
add_custom_command(OUTPUT ${declared}
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/python/declare.py
        ${CMAKE_CURRENT_SOURCE_DIR}/include ${CMAKE_BINARY_DIR}
        ${CMAKE_C_COMPILER} $<TARGET_FILE:basin_shared>
    DEPENDS basin_shared python/declare.py ${BASIN_HEADERS}
    COMMENT "Declaring the headers for cffi" VERBATIM)
add_custom_target(basin_python DEPENDS basin_shared ${declared})
install(FILES ${declared} DESTINATION basin COMPONENT python)

# Links have no place in a wheel: the file itself, under the name that the loader asks for.
install(FILES $<TARGET_FILE:basin_shared> DESTINATION basin/lib COMPONENT python
    RENAME $<TARGET_SONAME_FILE_NAME:basin_shared>)
set_target_properties(basin_shared PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
if(TARGET basin_cuda)
    add_dependencies(basin_python basin_cuda)
    install(TARGETS basin_cuda LIBRARY DESTINATION basin/lib COMPONENT python)
endif()

# Models of graphs want eigenvectors, and pictures may be WebP: what is opened for these lies beside
# libbasin, where src/base/library.c looks first. auditwheel adds what they need.
foreach(name LAPACK ARPACK WEBP)
    get_property(definitions SOURCE src/base/library.c PROPERTY COMPILE_DEFINITIONS)
    if(NOT BASIN_LIBRARY_${name})
        string(REGEX MATCH "BASIN_SONAME_${name}=\"([^\"]+)\"" _ "${definitions}")
        find_library(BASIN_LIBRARY_${name} ${CMAKE_MATCH_1})
    endif()
    if(BASIN_LIBRARY_${name} AND "${definitions}" MATCHES "BASIN_SONAME_${name}=\"([^\"]+)\"")
        file(REAL_PATH ${BASIN_LIBRARY_${name}} file)
        install(FILES ${file} DESTINATION basin/lib COMPONENT python RENAME ${CMAKE_MATCH_1})
    else()
        message(STATUS "Python package: without ${name}")
    endif()
endforeach()
