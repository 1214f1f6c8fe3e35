# Linux on x86-64 over musl, by the wrapper of Debian's musl-tools; scripts/platforms/musl uses it. The
# wrapper hides the system's own headers, so that nothing of glibc gets in.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER musl-gcc)
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
set(CMAKE_FIND_USE_CMAKE_SYSTEM_PATH OFF)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_PREFIX_PATH}/lib/pkgconfig)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
