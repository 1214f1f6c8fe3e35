# The CUDA backend, a module of its own: libbasin_cuda.so, opened at run time by
# src/engine/backend/cuda/load.c, so that nothing else needs a CUDA library. BASIN_CUDA: ON, OFF, or AUTO,
# which builds it where a toolkit of version 12 or later is found.

set(BASIN_CUDA AUTO CACHE STRING "Build the CUDA backend: ON, OFF, or AUTO (where nvcc is found)")
set(BASIN_CUDA_ARCHITECTURES 90 CACHE STRING
    "GPU architectures to build for; the PTX that comes along serves later ones")

set(cuda_found OFF)
if(NOT BASIN_CUDA STREQUAL "OFF" AND NOT BASIN_SANITIZE AND NOT BASIN_SANITIZE_THREAD AND NOT BASIN_FUZZ)
    include(CheckLanguage)
    if(NOT CMAKE_CUDA_COMPILER AND EXISTS /usr/local/cuda/bin/nvcc)
        set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
    endif()
    set(CMAKE_CUDA_ARCHITECTURES ${BASIN_CUDA_ARCHITECTURES})
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
        find_package(CUDAToolkit 12 QUIET)
        if(TARGET CUDA::cublasLt AND TARGET CUDA::nvrtc AND TARGET CUDA::cudart_static)
            set(cuda_found ON)
        endif()
    endif()
    if(BASIN_CUDA STREQUAL "ON" AND NOT cuda_found)
        message(FATAL_ERROR "BASIN_CUDA is ON, but no CUDA toolkit >= 12 with cuBLASLt and NVRTC "
            "was found")
    endif()
endif()

if(cuda_found)
    enable_language(CUDA)
    set(CMAKE_CUDA_STANDARD 17)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    file(GLOB_RECURSE BASIN_CUDA_SOURCES CONFIGURE_DEPENDS src/engine/backend/cuda/*.cu)
    # What uses instructions of one device only is compiled for that one.
    set(BASIN_CUDA_SM90A ${BASIN_CUDA_SOURCES})
    list(FILTER BASIN_CUDA_SM90A INCLUDE REGEX "_sm90a\\.cu$")
    list(FILTER BASIN_CUDA_SOURCES EXCLUDE REGEX "_sm90a\\.cu$")
    add_library(basin_cuda_sm90a OBJECT ${BASIN_CUDA_SM90A})
    set_target_properties(basin_cuda_sm90a PROPERTIES
        CUDA_ARCHITECTURES 90a-real POSITION_INDEPENDENT_CODE ON)
    add_library(basin_cuda MODULE ${BASIN_CUDA_SOURCES} $<TARGET_OBJECTS:basin_cuda_sm90a>)
    # basin_static gives it status and shapes; what it needs of them is linked in and hidden.
    target_link_libraries(basin_cuda PRIVATE basin_static CUDA::cudart_static CUDA::cublasLt
        CUDA::nvrtc ${CMAKE_DL_LIBS})
    foreach(part basin_cuda basin_cuda_sm90a)
        target_include_directories(${part} PRIVATE ${BASIN_ENGINE_INCLUDES} ${CUDAToolkit_INCLUDE_DIRS})
        target_compile_options(${part} PRIVATE
            $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>)
        if(BASIN_WERROR)
            target_compile_options(${part} PRIVATE
                $<$<COMPILE_LANGUAGE:CUDA>:--Werror=all-warnings>)
        endif()
        set_target_properties(${part} PROPERTIES
            CUDA_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden)
    endforeach()
    # Normal random numbers are the same bits everywhere: no fused multiply-adds there.
    set_source_files_properties(src/engine/backend/cuda/random.cu
        PROPERTIES COMPILE_OPTIONS --fmad=false)
    set_target_properties(basin_cuda PROPERTIES CUDA_RUNTIME_LIBRARY Static)
    target_link_options(basin_cuda PRIVATE -Wl,--exclude-libs,ALL -Wl,--no-undefined)
    add_dependencies(product basin_cuda)
    install(TARGETS basin_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cuda)
    message(STATUS "CUDA backend: ${CUDAToolkit_VERSION}, architectures ${BASIN_CUDA_ARCHITECTURES}")
else()
    message(STATUS "CUDA backend: not built")
endif()
