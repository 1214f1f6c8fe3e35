# A file whose name ends in an instruction set is built for that set alone, and called only where
# the processor has it. Files for the other architecture are left out.

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(FILTER BASIN_SOURCES EXCLUDE REGEX "_neon(bf16)?\\.c$")
    set(BASIN_FLAGS_avx2 "-mavx2;-mfma")
    set(BASIN_FLAGS_avx512
        "-mavx512f;-mavx512vl;-mavx512dq;-mavx512bw;-mfma;-mprefer-vector-width=512")
    # Splitting a number in two works by its roundings, so these may not be fused away.
    set(BASIN_FLAGS_amx "${BASIN_FLAGS_avx512};-mamx-tile;-mamx-bf16;-mprfchw;-ffp-contract=off")
    set(BASIN_FLAGS_avx512bf16 "${BASIN_FLAGS_avx512};-mavx512bf16")
    foreach(source IN LISTS BASIN_SOURCES)
        if(source MATCHES "_(avx2|avx512|avx512bf16|amx)\\.c$")
            set_property(SOURCE ${source} APPEND PROPERTY
                COMPILE_OPTIONS "${BASIN_FLAGS_${CMAKE_MATCH_1}}")
        elseif(source MATCHES "/cpu/(attention/kernels|simd/simd_portable)\\.c$"
            AND CMAKE_BUILD_TYPE STREQUAL "Release")
            # Only processors older than AVX2 run these: small matters more than fast.
            set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -Os)
        endif()
    endforeach()
else()
    list(FILTER BASIN_SOURCES EXCLUDE REGEX "_(avx2|avx512|avx512bf16|amx)\\.c$")
    foreach(source IN LISTS BASIN_SOURCES)
        if(source MATCHES "_neonbf16\\.c$")
            set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -march=armv8.2-a+bf16)
        endif()
    endforeach()
endif()

# What compiles expressions runs once per plan: the tables of kernels above leave no room for its loops
# to be unrolled.
if(CMAKE_BUILD_TYPE STREQUAL "Release")
    foreach(source IN LISTS BASIN_SOURCES)
        if(source MATCHES "/engine/(expr|plan|energy|io)/" AND NOT source MATCHES "/plan/run\\.c$")
            set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -O2)
        endif()
    endforeach()
endif()

# The reference backend judges the others, so it computes what its source says on every machine:
# no multiply and add contracted into one rounding.
foreach(source IN LISTS BASIN_SOURCES)
    if(source MATCHES "/backend/")
        set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS ${BASIN_BACKEND_FLAGS})
    endif()
    if(source MATCHES "/backend/ref/")
        set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -ffp-contract=off)
    endif()
    # clang takes minutes to instrument the unrolled kernels. No fuzz target reaches them, and gcc's
    # sanitizers watch them.
    if((BASIN_FUZZ AND source MATCHES "/backend/") OR (BASIN_SANITIZE
        AND CMAKE_C_COMPILER_ID MATCHES "Clang" AND source MATCHES "/backend/cpu/(attention|gemm)/"))
        set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize=all)
    endif()
endforeach()
