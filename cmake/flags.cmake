# How Basin's own code is compiled. Two interface targets carry the flags: basin_flags for tests,
# examples and benchmarks; basin_flags_strict, with more warnings, for the library and the program.
# Neither reaches whoever links the library.

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()

add_library(basin_flags INTERFACE)
target_compile_options(basin_flags INTERFACE
    -Wall -Wextra -Wshadow -Wstrict-prototypes $<$<BOOL:${BASIN_WERROR}>:-Werror>)

# The optimiser's guess, which differs between versions of gcc (13 warns of a prefetch); valgrind
# finds the true ones.
target_compile_options(basin_flags INTERFACE $<$<C_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)

# gcc does not warn of fields that a list without names leaves out inside a designated one.
target_compile_options(basin_flags INTERFACE
    $<$<C_COMPILER_ID:Clang>:-Wno-missing-field-initializers>)

add_library(basin_flags_strict INTERFACE)
target_link_libraries(basin_flags_strict INTERFACE basin_flags)
target_compile_options(basin_flags_strict INTERFACE
    -Wpedantic -Wconversion -Wno-sign-conversion -Wmissing-prototypes)
# So that a program linked with --gc-sections contains only what it calls (tests/install/size).
target_compile_options(basin_flags_strict INTERFACE
    "$<$<CONFIG:Release>:-ffunction-sections;-fdata-sections>")

# No -ffast-math: NaN, infinity and the order of a sum mean what they say. These two only give up
# errno after sqrt and floating-point traps, which nothing here reads, and let loops vectorise.
target_compile_options(basin_flags INTERFACE -fno-math-errno -fno-trapping-math)

# gcc 12 for arm64 ends with an internal error where it vectorises the largest of several numbers. The
# backend has no such loop, and keeps its own (isa.cmake).
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64" AND CMAKE_C_COMPILER_ID STREQUAL "GNU"
    AND CMAKE_C_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(basin_flags INTERFACE -fno-tree-loop-vectorize)
    set(BASIN_BACKEND_FLAGS -ftree-loop-vectorize)
endif()

if(BASIN_SANITIZE)
    add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all
        -fno-omit-frame-pointer)
    add_link_options(-fsanitize=address,undefined)
endif()

if(BASIN_SANITIZE_THREAD)
    add_compile_options(-fsanitize=thread)
    add_link_options(-fsanitize=thread)
endif()

# Optimised a little: the tests of kernels would crawl otherwise, and lines still count.
if(BASIN_COVERAGE)
    add_compile_options(--coverage -O1)
    add_link_options(--coverage)
endif()

if(BASIN_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "BASIN_FUZZ needs clang, found ${CMAKE_C_COMPILER_ID}: "
            "configure with -DCMAKE_C_COMPILER=clang, or run make fuzz")
    endif()
    add_compile_options(-g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
    add_link_options(-fsanitize=address,undefined)
endif()

# For packages; Debian's bring their own. Not for measuring: a release is built with it, a copy for
# one machine need not be.
if(BASIN_HARDEN)
    add_compile_options("$<$<COMPILE_LANGUAGE:C>:-fstack-protector-strong;-fstack-clash-protection>"
        "$<$<COMPILE_LANGUAGE:C>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
    add_link_options(-Wl,-z,relro -Wl,-z,now)
    include(CheckPIESupported)
    check_pie_supported(LANGUAGES C)
endif()

if(BASIN_LTO)
    include(CheckIPOSupported)
    check_ipo_supported(LANGUAGES C)
    set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
endif()
