# Other systems than Linux. What is written for one of them says so by its name: *_windows.c is for
# Windows alone, *_posix.c for all others. src/windows/ has what MinGW lacks of POSIX; the
# compiler sees it before all else, and no other file knows of it.

function(basin_platform_sources list)
    set(sources ${${list}})
    if(WIN32)
        list(FILTER sources EXCLUDE REGEX "_posix\\.c$")
    else()
        list(FILTER sources EXCLUDE REGEX "_windows\\.c$|/src/windows/")
    endif()
    set(${list} ${sources} PARENT_SCOPE)
endfunction()

if(WIN32)
    add_compile_definitions(_POSIX_C_SOURCE=200809L _FILE_OFFSET_BITS=64 __USE_MINGW_ANSI_STDIO=1
        WIN32_LEAN_AND_MEAN _WIN32_WINNT=0x0A00)
    include_directories(BEFORE SYSTEM ${CMAKE_CURRENT_SOURCE_DIR}/src/windows/include)
    add_compile_options(-include ${CMAKE_CURRENT_SOURCE_DIR}/src/windows/posix.h)
    # gcc for Windows keeps the stack at multiples of 16 bytes and yet takes it to be aligned for
    # vectors of 32 (its bug 54412).
    add_compile_options(-Wa,-muse-unaligned-vector-move)
    set(CMAKE_EXE_LINKER_FLAGS "${CMAKE_EXE_LINKER_FLAGS} -static")
endif()
