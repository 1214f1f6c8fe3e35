# What Basin depends on; docs/dependencies.md says why. BASIN_ENGINE_LIBRARIES is what the engine
# links, BASIN_TASKS_LIBRARIES what the applications link in addition; cmake/BasinConfig.cmake.in
# finds the same again for a static link.

find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
if(BASIN_STATIC AND BASIN_CJSON_SOURCE) # Debian has no libcjson.a; see scripts/static
    add_library(cjson STATIC ${BASIN_CJSON_SOURCE}/cJSON.c)
    target_include_directories(cjson SYSTEM PUBLIC ${BASIN_CJSON_SOURCE}/include)
    add_library(PkgConfig::CJSON ALIAS cjson)
else()
    pkg_check_modules(CJSON REQUIRED IMPORTED_TARGET libcjson)
endif()

pkg_check_modules(JPEG REQUIRED IMPORTED_TARGET libjpeg)
pkg_check_modules(PNG REQUIRED IMPORTED_TARGET libpng)

set(BASIN_ENGINE_IMPORTED Threads::Threads ZLIB::ZLIB PkgConfig::CJSON)
set(BASIN_TASKS_IMPORTED PkgConfig::JPEG PkgConfig::PNG)
set(BASIN_ENGINE_LIBRARIES ${BASIN_ENGINE_IMPORTED} m ${CMAKE_DL_LIBS})
set(BASIN_TASKS_LIBRARIES ${BASIN_ENGINE_LIBRARIES} ${BASIN_TASKS_IMPORTED})

# What only some commands need is opened by them (src/base/library.h): archives,
# eigenvectors. The build needs the headers, and learns the name under which each library will be
# looked for.
if(NOT BASIN_OPENED_HEADERS) # a folder that has them, without the libraries (scripts/platforms)
    pkg_check_modules(ARCHIVE REQUIRED IMPORTED_TARGET libarchive)
endif()
set(BASIN_OPENED_INCLUDES ${BASIN_OPENED_HEADERS} ${ARCHIVE_INCLUDE_DIRS})

function(basin_opened name file)
    find_library(BASIN_LIBRARY_${name} ${file} HINTS ${${name}_LIBRARY_DIRS})
    set(soname lib${file}${CMAKE_SHARED_LIBRARY_SUFFIX})
    if(BASIN_LIBRARY_${name})
        execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${BASIN_LIBRARY_${name}}
            OUTPUT_VARIABLE headers ERROR_QUIET)
        if(headers MATCHES "SONAME +([^ \n]+)")
            set(soname ${CMAKE_MATCH_1})
        endif()
    endif()
    set_property(SOURCE src/base/library.c APPEND PROPERTY COMPILE_DEFINITIONS
        "BASIN_SONAME_${name}=\"${soname}\"")
endfunction()
basin_opened(ARCHIVE archive)
basin_opened(LAPACK lapack)
# No header of libwebp is needed: where only the library is installed, or nothing, this is its name.
set_property(SOURCE src/base/library.c APPEND PROPERTY COMPILE_DEFINITIONS
    "BASIN_SONAME_WEBP=\"libwebp.so.7\"")

# The same for pkg-config: what a static link needs, by name. A Requires.private would do it, but
# then even --cflags asks for the .pc files of all these.
set(flags ${CJSON_LDFLAGS} -lz -lm ${CMAKE_THREAD_LIBS_INIT})
if(CMAKE_DL_LIBS)
    list(APPEND flags -l${CMAKE_DL_LIBS})
endif()
list(REMOVE_DUPLICATES flags)
list(JOIN flags " " BASIN_PC_LIBS)
list(PREPEND flags ${JPEG_LDFLAGS} ${PNG_LDFLAGS})
list(REMOVE_DUPLICATES flags)
list(JOIN flags " " BASIN_TASKS_PC_LIBS)

# The yardstick of the benchmarks: bench/ links it, `basin bench` opens it at run time, the library
# has its own matrix product. pkg-config knows where each system keeps cblas.h (Debian: a directory
# per architecture and threading model). Elsewhere any CBLAS will do that comes with its header.
pkg_check_modules(OPENBLAS QUIET IMPORTED_TARGET openblas)
if(OPENBLAS_FOUND)
    set(BASIN_BLAS PkgConfig::OPENBLAS)
else()
    find_package(BLAS QUIET)
    find_path(CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas cblas)
    if(BLAS_FOUND AND CBLAS_INCLUDE_DIR)
        set(BASIN_BLAS BLAS::BLAS)
        target_include_directories(BLAS::BLAS SYSTEM INTERFACE ${CBLAS_INCLUDE_DIR})
    else()
        message(STATUS "No CBLAS found: the programs of bench/ are left out")
    endif()
endif()
