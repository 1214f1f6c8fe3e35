# Tests (tests/**/test_*.c), examples with their expected output, fuzz targets, and the test of the
# installed package. Labels: slow, example, install; `make test` runs all but slow.

enable_testing()

set(launcher ${CMAKE_CROSSCOMPILING_EMULATOR})
# XGBoost's threads wait by spinning, which takes the cores from the tests that run beside.
set(environment OMP_WAIT_POLICY=passive)
set(timeout 300)
if(BASIN_SANITIZE)
    # A test that asks for an absurd size wants NULL from malloc, not an abort. The stack after a
    # return goes unwatched: gcc before 14 then misaligns 64-byte vectors (its bug 110027).
    # On arm64 the search for leaks takes four seconds per process, whatever it does, and tests start
    # hundreds: there `make valgrind` finds leaks, and x86-64 does. The tracer of clang 14 crashes in
    # programs with many threads: leaks are left to gcc.
    set(leaks 1)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64" OR CMAKE_C_COMPILER_ID MATCHES "Clang")
        set(leaks 0)
    endif()
    list(APPEND environment
        ASAN_OPTIONS=allocator_may_return_null=1:detect_stack_use_after_return=0:detect_leaks=${leaks}
        UBSAN_OPTIONS=print_stacktrace=1)
    set(timeout 900)
endif()
if(BASIN_SANITIZE_THREAD)
    # Libraries that were not compiled for it are left out; a forked child may start threads; a rank that ends the job
    # does so at once, not after the sanitizer's second.
    list(APPEND environment "TSAN_OPTIONS=atexit_sleep_ms=0:die_after_fork=0:allocator_may_return_null=1:suppressions=${CMAKE_CURRENT_SOURCE_DIR}/.ci/tsan-suppressions")
    set(timeout 1800)
endif()
if(BASIN_COVERAGE)
    # A process that is killed while it writes its counts damages them; the next one says so, which
    # tests that count the lines of messages must not see.
    list(APPEND environment GCOV_ERROR_FILE=${CMAKE_BINARY_DIR}/gcov.log)
endif()
if(BASIN_VALGRIND)
    find_program(VALGRIND valgrind REQUIRED)
    set(launcher ${VALGRIND} --quiet --error-exitcode=99 --leak-check=full
        --errors-for-leak-kinds=definite,indirect --show-leak-kinds=definite,indirect
        --suppressions=${CMAKE_CURRENT_SOURCE_DIR}/.ci/valgrind-suppressions)
    # Pixels that libjpeg-turbo's vectors decode count as not initialised.
    list(APPEND environment OMP_NUM_THREADS=2 JSIMD_FORCENONE=1)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
        list(APPEND environment BASIN_ISA=avx2) # valgrind does not know AVX-512
    endif()
    set(timeout 1800)
endif()

if(CMAKE_CROSSCOMPILING)
    set(timeout 7200)
endif()

# A test is ended where it hangs, not where other programs have the processors.
function(basin_add_test name label)
    add_test(NAME ${name} COMMAND ${ARGN})
    set(limit ${timeout})
    if(label STREQUAL slow AND limit LESS 1200)
        set(limit 1200)
    endif()
    set_tests_properties(${name} PROPERTIES
        LABELS "${label}" ENVIRONMENT "${environment}" TIMEOUT ${limit} SKIP_RETURN_CODE 77)
endfunction()

if(NOT BASIN_TESTS STREQUAL "OFF" OR BASIN_FUZZ)
    set(required)
    if(BASIN_TESTS STREQUAL "ON" OR BASIN_FUZZ)
        set(required REQUIRED)
    endif()
    if(NOT BASIN_FUZZ)
        pkg_check_modules(CMOCKA ${required} IMPORTED_TARGET cmocka)
    endif()
endif()

if(TARGET PkgConfig::CMOCKA)
    file(GLOB_RECURSE BASIN_TEST_SOURCES CONFIGURE_DEPENDS tests/test_*.c)
    file(GLOB BASIN_TEST_SUPPORT CONFIGURE_DEPENDS tests/support/*.c)
    if(BASIN_TEST_SUPPORT)
        add_library(basin_test_support STATIC ${BASIN_TEST_SUPPORT})
        target_include_directories(basin_test_support PUBLIC src tests)
        target_link_libraries(basin_test_support
            PUBLIC basin_tasks_static PkgConfig::CMOCKA PRIVATE basin_flags)
    endif()
    foreach(source IN LISTS BASIN_TEST_SOURCES)
        cmake_path(GET source STEM name)
        add_executable(${name} ${source})
        # What a test calls is optimised; optimising the test itself takes longer than it saves.
        # These compute long sums by themselves.
        set(optimised -Og)
        if(name MATCHES "^test_(attention|cpu|cpu_narrow|augment|gemm)$")
            set(optimised -O2)
        endif()
        target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:${optimised}>)
        target_include_directories(${name} PRIVATE src tests)
        # Some make archives to read back.
        target_link_libraries(${name} PRIVATE basin_flags basin_tasks_static PkgConfig::CMOCKA
            PkgConfig::ARCHIVE
            $<TARGET_NAME_IF_EXISTS:basin_test_support>)
        target_compile_definitions(${name} PRIVATE BASIN_SOURCE="${CMAKE_CURRENT_SOURCE_DIR}"
            $<$<BOOL:${BASIN_COVERAGE}>:BASIN_COVERAGE> $<$<CONFIG:Release>:BASIN_RELEASE>
            $<$<BOOL:${CMAKE_CROSSCOMPILING}>:BASIN_EMULATED>)
        # In these the n-th allocation fails (tests/support/alloc_fail.h).
        if(name MATCHES "_alloc$")
            foreach(function malloc calloc realloc aligned_alloc free)
                target_link_options(${name} PRIVATE -Wl,--wrap=${function})
            endforeach()
        endif()
        # These run the program, under valgrind or an emulator where the others do.
        if(source MATCHES "/tests/program/")
            list(JOIN launcher " " program)
            string(APPEND program " $<TARGET_FILE:basin_program>")
            target_compile_definitions(${name} PRIVATE BASIN_PROGRAM="${program}")
            add_dependencies(${name} basin_program)
            target_link_libraries(${name} PRIVATE basin_commands)
        endif()
        set(label quick)
        if(name MATCHES "_slow$")
            set(label slow)
        endif()
        basin_add_test(${name} ${label} ${launcher} $<TARGET_FILE:${name}>)
        # The quick run lets some of the thousands of allocations fail, this one all.
        file(STRINGS ${source} samples REGEX "alloc_fail_sample\\(")
        if(samples)
            basin_add_test(${name}_all slow ${launcher} $<TARGET_FILE:${name}>)
            set_property(TEST ${name}_all APPEND PROPERTY ENVIRONMENT BASIN_TEST_ALLOC_ALL=1)
            set_tests_properties(${name}_all PROPERTIES TIMEOUT 1800)
        endif()
    endforeach()
    # One name means one thing: all headers in one translation unit, in their order and in reverse.
    # Those left out are bodies, compiled once for each instruction set.
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS include/*.h src/*.h)
    list(FILTER headers EXCLUDE REGEX
        "/backend/cuda/|_body\\.h$|/kernels_[a-z]+\\.h$|/vector_[a-z]+\\.h$")
    if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
        list(FILTER headers EXCLUDE REGEX "_amx\\.h$")
    endif()
    list(SORT headers)
    foreach(order forward backward)
        list(JOIN headers "\"\n#include \"" lines)
        file(CONFIGURE OUTPUT headers_${order}.c CONTENT "#include \"${lines}\"\n")
        list(REVERSE headers)
    endforeach()
    add_executable(test_headers tests/base/headers.c ${CMAKE_CURRENT_BINARY_DIR}/headers_forward.c
        ${CMAKE_CURRENT_BINARY_DIR}/headers_backward.c)
    target_include_directories(test_headers PRIVATE src)
    target_compile_options(test_headers PRIVATE -Wno-unused-function)
    target_link_libraries(test_headers PRIVATE basin_flags basin_tasks_static)
    basin_add_test(test_headers quick ${launcher} $<TARGET_FILE:test_headers>)
    # The matrix product, and bfloat16, once more with the instruction sets that this machine would
    # not choose; avx512 is that without AMX.
    if(TARGET test_gemm AND TARGET test_cpu_narrow AND NOT BASIN_VALGRIND)
        set(sets portable neon)
        if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
            set(sets portable avx2 avx512)
        endif()
        foreach(isa IN LISTS sets)
            foreach(test gemm cpu_narrow)
                basin_add_test(test_${test}_${isa} quick ${launcher} $<TARGET_FILE:test_${test}>)
                set_property(TEST test_${test}_${isa} APPEND PROPERTY ENVIRONMENT BASIN_ISA=${isa})
            endforeach()
        endforeach()
    endif()
endif()

# Examples link the shared library: a function they use that is not exported shows here.
add_custom_target(examples)
list(JOIN launcher " " launcher_text)
file(GLOB BASIN_EXAMPLES CONFIGURE_DEPENDS examples/[0-9]*.c)
foreach(source IN LISTS BASIN_EXAMPLES)
    cmake_path(GET source STEM name)
    add_executable(example_${name} ${source})
    set_target_properties(example_${name} PROPERTIES
        OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/examples)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    target_link_libraries(example_${name} PRIVATE basin_flags basin_tasks_shared basin_shared m)
    add_dependencies(examples example_${name})
    basin_add_test(example_${name} example ${CMAKE_COMMAND}
        "-DLAUNCHER=${launcher_text}" -DPROGRAM=$<TARGET_FILE:example_${name}>
        -DEXPECTED=${CMAKE_CURRENT_SOURCE_DIR}/examples/${name}.out
        -DACTUAL=${CMAKE_BINARY_DIR}/examples/${name}.out
        -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/compare-output.cmake)
endforeach()

# The long examples are folders, each with a test of its program. Only memories, which reads pictures,
# needs more than the engine.
foreach(name maze memories sudoku text)
    add_executable(example_${name} examples/${name}/${name}.c)
    set_target_properties(example_${name} PROPERTIES
        OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/examples)
    target_link_libraries(example_${name} PRIVATE basin_flags
        $<$<STREQUAL:${name},memories>:basin_tasks_shared> basin_shared m)
    add_dependencies(examples example_${name})
    basin_add_test(example_${name} example sh ${CMAKE_CURRENT_SOURCE_DIR}/examples/${name}/test
        "${launcher_text} $<TARGET_FILE:example_${name}>")
endforeach()

# The paper's programs (paper/README.md), which must give the numbers of `basin .. train --preset paper-*`.
add_custom_target(paper)
foreach(name image anomaly graph)
    add_executable(paper_${name} paper/${name}.c)
    set_target_properties(paper_${name} PROPERTIES
        OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/paper)
    target_link_libraries(paper_${name} PRIVATE basin_flags basin_tasks_shared basin_shared m)
    add_dependencies(paper paper_${name} basin_program)
    basin_add_test(paper_${name} quick sh ${CMAKE_CURRENT_SOURCE_DIR}/paper/test ${name}
        "${launcher_text} $<TARGET_FILE:paper_${name}>" "${launcher_text} $<TARGET_FILE:basin_program>")
endforeach()

# basin.h opens with a complete program, which is the first example.
basin_add_test(header_program example sh ${CMAKE_CURRENT_SOURCE_DIR}/tests/install/header_program)

# Rules that no compiler checks: the arrows between rooms, the files that documents name; and that
# each of these rules catches something.
list(JOIN launcher " " launched)
foreach(rules modules modules_catches docs docs_catches)
    basin_add_test(${rules} quick ${CMAKE_COMMAND} -E env "BASIN=${launched} $<TARGET_FILE:basin_program>"
        sh ${CMAKE_CURRENT_SOURCE_DIR}/tests/base/test_${rules}.sh)
endforeach()

# The ABI of the engine, and the odd forms of English, each against what is committed.
find_program(PYTHON3 python3)
if(PYTHON3)
    basin_add_test(abi quick ${PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/scripts/abi check)
    basin_add_test(abi_catches quick sh ${CMAKE_CURRENT_SOURCE_DIR}/tests/base/test_abi_catches.sh)
    basin_add_test(words quick ${PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/scripts/words --check)
    basin_add_test(words_catches quick ${PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/scripts/words --test)
    basin_add_test(figures quick ${PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/scripts/figures --check)
    basin_add_test(figures_catches quick ${PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/scripts/figures --test)
endif()

# The viewer page forbids all but its own style and script.
basin_add_test(viewer_policy quick ${CMAKE_CURRENT_SOURCE_DIR}/scripts/viewer-policy --check)

basin_add_test(advice quick ${CMAKE_CURRENT_SOURCE_DIR}/tests/install/advice)
if(PYTHON3)
    basin_add_test(packaging quick ${CMAKE_CURRENT_SOURCE_DIR}/tests/install/packaging)
    basin_add_test(scale_model quick ${PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/bench/scale.py --test)
endif()
# The server as its users see it, and mutated bodies of requests.
if(PYTHON3 AND NOT CMAKE_CROSSCOMPILING)
    list(JOIN launcher " " program)
    string(APPEND program " $<TARGET_FILE:basin_program>")
    set(serve ${PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/tests/tasks/nodes/serve.py ${program})
    basin_add_test(serve quick ${serve})
    basin_add_test(serve_fuzz slow ${serve} fuzz 20000)
endif()
basin_add_test(tutorial_catches quick ${CMAKE_CURRENT_SOURCE_DIR}/tests/site/tutorial_catches)

# The site needs packages of its own (scripts/install-deps site), and a browser.
foreach(part links browser)
    basin_add_test(site_${part} slow ${CMAKE_COMMAND} -E env BASIN=$<TARGET_FILE:basin_program>
        ${CMAKE_CURRENT_SOURCE_DIR}/tests/site/${part})
endforeach()
# The Explorer's engine and its tests by this compiler: they read private headers, and only slow tests build the page.
# The headers of the examples have functions that it does not call.
basin_add_test(explorer_compiles quick ${CMAKE_C_COMPILER} -std=gnu17 -Wall -Wno-unused-function -Werror -fsyntax-only
    -I${CMAKE_CURRENT_SOURCE_DIR}/include -I${CMAKE_CURRENT_SOURCE_DIR}/src -I${CMAKE_CURRENT_SOURCE_DIR}/tests/explorer
    ${CMAKE_CURRENT_SOURCE_DIR}/explorer/engine.c ${CMAKE_CURRENT_SOURCE_DIR}/explorer/test/verify.c
    ${CMAKE_CURRENT_SOURCE_DIR}/explorer/test/bench.c ${CMAKE_CURRENT_SOURCE_DIR}/explorer/test/fuzz.c)
# The Explorer needs a compiler to WebAssembly (scripts/install-deps explorer), and a browser. They
# share a build folder.
foreach(part golden page bits fuzz model)
    basin_add_test(explorer_${part} slow ${CMAKE_COMMAND} -E env BASIN=$<TARGET_FILE:basin_program>
        ${CMAKE_CURRENT_SOURCE_DIR}/tests/explorer/${part})
endforeach()
set_tests_properties(explorer_golden explorer_page explorer_bits explorer_fuzz explorer_model PROPERTIES TIMEOUT 1800 RESOURCE_LOCK explorer)

file(GLOB BASIN_FUZZ_SOURCES CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
if(BASIN_FUZZ)
    add_custom_target(fuzz)
    foreach(source IN LISTS BASIN_FUZZ_SOURCES)
        cmake_path(GET source STEM name)
        add_executable(${name} ${source} tests/fuzz/seeds.c)
        target_compile_definitions(${name} PRIVATE BASIN_SOURCE="${CMAKE_CURRENT_SOURCE_DIR}")
        set_target_properties(${name} PROPERTIES
            RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
        target_include_directories(${name} PRIVATE src tests)
        target_link_libraries(${name} PRIVATE basin_flags basin_commands PkgConfig::ARCHIVE)
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
        add_dependencies(fuzz ${name})
    endforeach()
elseif(NOT BASIN_TESTS STREQUAL "OFF")
    # The same targets as ordinary tests, on mutations that repeat; they need no cmocka.
    foreach(source IN LISTS BASIN_FUZZ_SOURCES)
        cmake_path(GET source STEM name)
        add_executable(replay_${name} ${source} tests/fuzz/replay.c)
        target_compile_definitions(replay_${name} PRIVATE
            BASIN_SOURCE="${CMAKE_CURRENT_SOURCE_DIR}")
        target_include_directories(replay_${name} PRIVATE src tests)
        target_link_libraries(replay_${name} PRIVATE basin_flags basin_commands
            PkgConfig::ARCHIVE)
        basin_add_test(replay_${name} quick ${launcher} $<TARGET_FILE:replay_${name}>)
    endforeach()
endif()

# The package: installed once into an empty prefix, then used as others would. Sanitizers, valgrind
# or an emulator would have to be given to the user's program as well.
set(install_tests ${CMAKE_CURRENT_SOURCE_DIR}/tests/install)
if(NOT BASIN_SANITIZE AND NOT BASIN_SANITIZE_THREAD AND NOT BASIN_VALGRIND AND NOT BASIN_FUZZ AND NOT CMAKE_CROSSCOMPILING)
    set(prefix ${CMAKE_BINARY_DIR}/installed)
    set(place ${prefix} ${CMAKE_INSTALL_LIBDIR})
    set(headers ${install_tests}/headers ${CMAKE_CURRENT_SOURCE_DIR}/include)
    basin_add_test(install_prefix install ${install_tests}/prefix ${CMAKE_BINARY_DIR} ${prefix})
    basin_add_test(install_c install ${install_tests}/run ${place} C ${CMAKE_C_COMPILER})
    basin_add_test(install_cxx install ${install_tests}/run ${place} CXX g++)
    basin_add_test(install_exports install
        ${install_tests}/exports ${place} ${CMAKE_C_COMPILER} -std=c17)
    basin_add_test(install_exports_cxx install
        ${install_tests}/exports ${place} g++ -x c++ -std=c++17)
    basin_add_test(install_debian install ${install_tests}/debian ${prefix})
    basin_add_test(install_size install ${install_tests}/size ${place} ${CMAKE_C_COMPILER})
    set_tests_properties(install_prefix PROPERTIES FIXTURES_SETUP installed)
    set_tests_properties(install_c install_cxx install_exports install_exports_cxx install_size
        install_debian
        PROPERTIES FIXTURES_REQUIRED installed)
    basin_add_test(headers_c install ${headers} ${CMAKE_C_COMPILER} -std=c17)
    basin_add_test(headers_g++ install ${headers} g++ -x c++ -std=c++17)
    basin_add_test(headers_clang++ install ${headers} clang++ -x c++ -std=c++17)
    basin_add_test(declared install ${install_tests}/declared)
    basin_add_test(dist slow ${install_tests}/dist)
    basin_add_test(reproducible slow ${install_tests}/reproducible)
    set_tests_properties(dist reproducible PROPERTIES TIMEOUT 1800)
    # Debian's packages on machines of their own; one after the other, as both may have to make the bare one.
    foreach(test deb tutorials)
        basin_add_test(${test} slow ${install_tests}/${test} ${CMAKE_CURRENT_SOURCE_DIR}/build-deb)
        set_tests_properties(${test} PROPERTIES RESOURCE_LOCK bare)
    endforeach()
    basin_add_test(static slow
        ${install_tests}/static ${CMAKE_CURRENT_SOURCE_DIR}/build-static/basin)
    foreach(tutorial researcher risk-engineer chemist c-engineer)
        basin_add_test(tutorial_${tutorial} slow ${CMAKE_CURRENT_SOURCE_DIR}/tests/site/tutorial
            ${CMAKE_CURRENT_SOURCE_DIR}/docs/tutorials/${tutorial}.md ${place})
        set_tests_properties(tutorial_${tutorial} PROPERTIES FIXTURES_REQUIRED installed)
    endforeach()
    basin_add_test(wheel slow ${install_tests}/wheel ${CMAKE_CURRENT_SOURCE_DIR}/dist)
endif()

# The longest begin first, also where no earlier run has measured them: no core waits for them at
# the end. Those with ranks or kills wait themselves, so others run beside them.
foreach(name test_cli_kill serve words test_cli_ranks test_cli_anomaly_ranks test_cli_context
    test_anomaly_ensemble install_prefix install_cxx test_cpu test_cli_anomaly test_engine_alloc
    test_sudoku test_cli_node_ranks test_anomaly test_live example_sudoku)
    if(TEST ${name})
        set_tests_properties(${name} PROPERTIES COST 10)
    endif()
endforeach()

# What `make test` builds: all but the benchmarks, and the CUDA module only where a GPU can run it, since
# its files take as long as all others together. `make`, `make install` and `make test-python` compile it everywhere.
get_property(tested DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
file(GLOB gpus /dev/nvidia[0-9]* /dev/dxg)
set(left_out)
if(TARGET basin_cuda AND NOT gpus)
    list(FILTER tested EXCLUDE REGEX "^basin_cuda")
    set(left_out COMMAND ${CMAKE_COMMAND} -E echo
        "No GPU here: the tests do without the CUDA module, which make compiles")
endif()
list(FILTER tested EXCLUDE REGEX "^bench")
add_custom_target(tests ${left_out} VERBATIM)
foreach(target IN LISTS tested)
    get_target_property(optional ${target} EXCLUDE_FROM_ALL)
    get_target_property(type ${target} TYPE)
    if(NOT optional AND (NOT type STREQUAL "UTILITY" OR target STREQUAL "manual"))
        add_dependencies(tests ${target})
    endif()
endforeach()
