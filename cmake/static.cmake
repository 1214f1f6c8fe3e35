# BASIN_STATIC: the program as one file that needs no dynamic library (`make static`). Archives and
# eigenvectors are linked in; what else is opened at run time (src/base/library.h) is left out.

foreach(objects basin_base basin_objects basin_tasks_objects)
    target_compile_definitions(${objects} PRIVATE BASIN_LIBRARY_LINKED)
endforeach()

# Debian's own LAPACK and BLAS, wherever the alternatives point: OpenBLAS would be 30 MB.
set(folder /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE})
find_library(BASIN_STATIC_LAPACK lapack REQUIRED HINTS ${folder}/lapack NO_CMAKE_SYSTEM_PATH)
find_library(BASIN_STATIC_BLAS blas REQUIRED HINTS ${folder}/blas NO_CMAKE_SYSTEM_PATH)
set(libraries ${BASIN_STATIC_LAPACK} ${BASIN_STATIC_BLAS} gfortran)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64") # elsewhere gcc has no such library
    list(APPEND libraries quadmath)
endif()

# Of libarchive only tar, zip and their filters are used, which need these alone.
list(APPEND libraries ${BASIN_LIBRARY_ARCHIVE})
foreach(name nettle lzma zstd bz2)
    find_library(BASIN_STATIC_${name} ${name} REQUIRED)
    list(APPEND libraries ${BASIN_STATIC_${name}})
endforeach()
# The last of every line, since all of them need these two.
set(CMAKE_C_STANDARD_LIBRARIES "${CMAKE_C_STANDARD_LIBRARIES} -lz -lm")

target_link_libraries(basin_tasks_static PUBLIC ${libraries})
target_link_options(basin_program PRIVATE -static -s)
