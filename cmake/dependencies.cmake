# What Basin stands on; docs/dependencies.md says why. BASIN_LIBRARIES is what the library
# links; cmake/BasinConfig.cmake.in finds the same again for whoever links it statically.

find_package(OpenMP REQUIRED COMPONENTS C)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(CJSON REQUIRED IMPORTED_TARGET libcjson)

# pkg-config knows where each system keeps cblas.h (Debian: a directory per architecture and
# threading model). Elsewhere any CBLAS will do that CMake finds together with its header.
set(BASIN_PC_REQUIRES "zlib libcjson")
pkg_check_modules(OPENBLAS IMPORTED_TARGET openblas)
if(OPENBLAS_FOUND)
    set(BASIN_BLAS PkgConfig::OPENBLAS)
    string(APPEND BASIN_PC_REQUIRES " openblas")
else()
    find_package(BLAS REQUIRED)
    find_path(CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas cblas REQUIRED)
    set(BASIN_BLAS BLAS::BLAS)
    include_directories(SYSTEM ${CBLAS_INCLUDE_DIR})
endif()

set(BASIN_IMPORTED_TARGETS OpenMP::OpenMP_C ${BASIN_BLAS} ZLIB::ZLIB PkgConfig::CJSON)
set(BASIN_LIBRARIES ${BASIN_IMPORTED_TARGETS} m)
