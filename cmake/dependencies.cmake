# What Basin stands on; docs/dependencies.md says why. BASIN_LIBRARIES is what the library
# links; cmake/BasinConfig.cmake.in finds the same again for whoever links it statically.

find_package(OpenMP REQUIRED COMPONENTS C)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(CJSON REQUIRED IMPORTED_TARGET libcjson)

set(BASIN_IMPORTED_TARGETS OpenMP::OpenMP_C ZLIB::ZLIB PkgConfig::CJSON)
set(BASIN_LIBRARIES ${BASIN_IMPORTED_TARGETS} m)
set(BASIN_PC_REQUIRES "zlib libcjson")

# basin_blas: the yardstick of the benchmarks and of `basin bench`; the library has its own matrix
# product. pkg-config knows where each system keeps cblas.h (Debian: a directory per architecture
# and threading model). Elsewhere any CBLAS will do that CMake finds together with its header.
add_library(basin_blas INTERFACE)
pkg_check_modules(OPENBLAS IMPORTED_TARGET openblas)
if(OPENBLAS_FOUND)
    target_link_libraries(basin_blas INTERFACE PkgConfig::OPENBLAS)
else()
    find_package(BLAS REQUIRED)
    find_path(CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas cblas REQUIRED)
    target_link_libraries(basin_blas INTERFACE BLAS::BLAS)
    target_include_directories(basin_blas SYSTEM INTERFACE ${CBLAS_INCLUDE_DIR})
endif()
