# arm64 Linux by Debian's cross compiler, with the packages that scripts/platforms/arm64 unpacked; what
# is built runs under QEMU, and so do the tests.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES BASIN_SYSROOT)
set(CMAKE_SYSROOT ${BASIN_SYSROOT})
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${BASIN_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${BASIN_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${BASIN_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig)
