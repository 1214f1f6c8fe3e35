# The front door. CMake does the work (CMakeLists.txt); this file names what can be made, installs
# what is missing where that was asked for, and keeps each kind of build in its own directory.

BUILD         ?= build
BUILD_TYPE    ?= Release
PREFIX        ?= /usr/local
DESTDIR       ?=
FUZZ_SECONDS  ?= 60
CMAKE_OPTIONS ?=
JOBS          ?= $(shell getconf _NPROCESSORS_ONLN)
export JOBS

# make test NO_DEPS=1 leaves the system's packages alone.
INSTALL_DEPS = $(if $(NO_DEPS),@:,@scripts/install-deps)
OPTIONS      = -DCMAKE_BUILD_TYPE=$(BUILD_TYPE) -DCMAKE_INSTALL_PREFIX=$(PREFIX) $(CMAKE_OPTIONS)
# One test more than there are processors: some wait for programs that they started.
CTEST        = ctest --output-on-failure --no-tests=error -j $$(($(JOBS) + 1)) $(SOME)
# TESTS=REGEX: these tests only; PART=2/5: every fifth, from the second on. Of make test, test-slow, valgrind and the sanitizers.
STRIDE      := ,,
SOME         = $(if $(TESTS),-R '$(TESTS)') $(if $(PART),-I $(subst /,$(STRIDE),$(PART)))
SOURCES      = find src include tests bench examples paper -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh'

.PHONY: all help deps test test-slow demo paper bench bench-rivals install sanitize coverage valgrind \
        sanitize-clang sanitize-thread fuzz tidy format format-check abi words gates docs site explorer dist static deb clean wheel test-python test-wheel \
        clang musl arm64 ubuntu debian release-check

all:
	@scripts/build $(BUILD) product $(OPTIONS)
	@$(MAKE) --no-print-directory help

help:
	@echo
	@echo "Built: $(BUILD)/basin and libbasin. What else can be made:"
	@echo "  make test        install what is missing, build, run the quick tests"
	@echo "  make test-slow   the slow tests"
	@echo "  make demo        install what is missing, build, train on pictures, complete them, report"
	@echo "  make paper       the paper in three programs, on data that is here (MUTAG=file); paper/README.md"
	@echo "  make bench       build and run the benchmarks"
	@echo "  make bench-rivals  Basin and the same models in PyTorch and JAX in turn: ratios"
	@echo "  make install     headers, libraries, program, pkg-config and CMake files: PREFIX, DESTDIR"
	@echo "  make sanitize    the quick tests under AddressSanitizer and UBSan; sanitize-clang: by clang"
	@echo "  make sanitize-thread  the quick tests under ThreadSanitizer"
	@echo "  make coverage    which lines the quick tests run, by module; fails below .ci/coverage-floor"
	@echo "  make valgrind    the quick tests under valgrind"
	@echo "  make fuzz        fuzz the file readers, FUZZ_SECONDS=$(FUZZ_SECONDS) each"
	@echo "  make tidy        clang-tidy over src, with the checks of .clang-tidy"
	@echo "  make format      clang-format over all sources; format-check only says what differs"
	@echo "  make words       counts odd forms of English; fails above .ci/words-ceiling"
	@echo "  make abi         describes the engine's ABI anew, in abi/libbasin.abi; the test abi compares"
	@echo "  make gates       all that a change must pass: test, test-python, format-check, tidy, sanitize,"
	@echo "                   coverage; by turns sanitize-clang, deb, static and musl, test-wheel,"
	@echo "                   sanitize-thread, site, explorer, parts of valgrind, fuzz, slow, other"
	@echo "                   compilers and systems, arm64"
	@echo "  make release-check  all that is promised, in hours, with a table of times; ONLY=NAME,NAME"
	@echo "  make wheel       the Python package, in dist/"
	@echo "  make test-python the tests of the Python package, over the libraries of $(BUILD)"
	@echo "  make test-wheel  the same over the wheel, installed into an environment of its own"
	@echo "  make docs        the manual as HTML, in $(BUILD)/docs/html"
	@echo "  make explorer    a page to try energies in, build/explorer/basin.html (docs/explorer.md)"
	@echo "  make site        documents, references, commands and notebooks as a site, in $(BUILD)/site"
	@echo "  make dist        source tarball, bill of materials and checksums of HEAD, in $(BUILD)/dist"
	@echo "  make static      the program as one file without dynamic libraries, build-static/basin"
	@echo "  make deb         Debian's packages of HEAD, source and binary, in build-deb"
	@echo "  make clang       build and test with clang; make musl, arm64, ubuntu, debian: on"
	@echo "                   that platform, as far as it can be had here (docs/platforms.md)"
	@echo "  make clean       remove all build directories"

deps:
	@scripts/install-deps build test

test:
	$(INSTALL_DEPS) build test
	@scripts/build $(BUILD) tests $(OPTIONS) -DBASIN_TESTS=ON
	@$(CTEST) --test-dir $(BUILD) -LE slow

# With TESTS, what those test must be there: make static deb wheel.
test-slow:
	$(INSTALL_DEPS) build test browser site python explorer
	@scripts/build $(BUILD) all $(OPTIONS) -DBASIN_TESTS=ON
	@if [ -z '$(TESTS)' ]; then $(MAKE) --no-print-directory static deb; fi
	@if [ -n '$(TESTS)' ]; then :; elif scripts/wheel --tools; then $(MAKE) --no-print-directory wheel; else \
	    echo "test-slow: no PyPI, so no wheel is tested"; test -z "$$CI"; fi
	@$(CTEST) --test-dir $(BUILD) -L slow

# The demo does without its pictures where they cannot be had, and without the CUDA module, which takes
# minutes to compile, where there is no GPU.
demo:
	$(INSTALL_DEPS) build
	-$(INSTALL_DEPS) demo
	@if [ -e /dev/nvidiactl ]; then scripts/build $(BUILD) product $(OPTIONS); else \
	    echo "make demo: no NVIDIA GPU here, so the CUDA module is not compiled (make compiles it)"; \
	    scripts/build $(BUILD) basin_program $(OPTIONS); fi
	@scripts/demo $(BUILD)

# The paper's three programs at small sizes, five minutes on two cores. MUTAG=MUTAG.zip: graphs of that TUDataset.
paper:
	$(INSTALL_DEPS) build
	@scripts/build $(BUILD) paper $(OPTIONS)
	@paper/run $(BUILD) $(MUTAG)

bench:
	$(INSTALL_DEPS) build
	@scripts/build $(BUILD) all $(OPTIONS)
	@scripts/build $(BUILD) bench
	@scripts/bench $(BUILD)

bench-rivals:
	$(INSTALL_DEPS) build
	@scripts/build $(BUILD) product $(OPTIONS)
	@scripts/bench-rivals $(BUILD) $(RIVALS_OPTIONS)

install:
	@scripts/build $(BUILD) product $(OPTIONS)
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD)

sanitize:
	$(INSTALL_DEPS) build test
	@scripts/build build-sanitize all -DCMAKE_BUILD_TYPE=RelWithDebInfo -DBASIN_SANITIZE=ON \
	    $(CMAKE_OPTIONS)
	@$(CTEST) --test-dir build-sanitize -LE 'slow|install'

sanitize-clang:
	$(INSTALL_DEPS) build test clang
	@scripts/build build-sanitize-clang all -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	    -DBASIN_SANITIZE=ON $(CMAKE_OPTIONS)
	@$(CTEST) --test-dir build-sanitize-clang -LE 'slow|install'

# Addresses as the sanitizer of gcc 12 expects them. Those that let allocations fail, replay files or kill processes
# have one thread, or say nothing here.
sanitize-thread:
	$(INSTALL_DEPS) build test
	@scripts/build build-sanitize-thread tests -DCMAKE_BUILD_TYPE=RelWithDebInfo -DBASIN_SANITIZE_THREAD=ON \
	    -DBASIN_WERROR=OFF -DBASIN_TESTS=ON $(CMAKE_OPTIONS)
	@setarch -R $(CTEST) --test-dir build-sanitize-thread -LE 'slow|install' -E 'alloc|replay|kill'

coverage:
	$(INSTALL_DEPS) build test
	@scripts/build build-coverage all -DCMAKE_BUILD_TYPE=None -DBASIN_COVERAGE=ON \
	    -DBASIN_CUDA=OFF -DBASIN_TESTS=ON $(CMAKE_OPTIONS)
	@find build-coverage -name '*.gcda' -delete
	@$(CTEST) --test-dir build-coverage -LE 'slow|install'
	@scripts/coverage build-coverage .ci/coverage-floor

valgrind:
	$(INSTALL_DEPS) build test valgrind
	@scripts/build build-valgrind all -DCMAKE_BUILD_TYPE=RelWithDebInfo -DBASIN_VALGRIND=ON \
	    $(CMAKE_OPTIONS)
	@$(CTEST) --test-dir build-valgrind -LE 'slow|install'

fuzz:
	$(INSTALL_DEPS) build fuzz
	@scripts/build build-fuzz fuzz -DCMAKE_C_COMPILER=clang -DBASIN_FUZZ=ON $(CMAKE_OPTIONS)
	@scripts/fuzz build-fuzz $(FUZZ_SECONDS)

tidy:
	$(INSTALL_DEPS) build tidy
	@scripts/tidy build-tidy $(CMAKE_OPTIONS)

format:
	$(INSTALL_DEPS) format
	@$(SOURCES) | xargs clang-format -i

format-check:
	$(INSTALL_DEPS) format
	@$(SOURCES) | xargs clang-format --dry-run -Werror

abi:
	$(INSTALL_DEPS) test
	@scripts/abi write

words:
	@scripts/words
	@scripts/words --check

gates:
	@.ci/run

# ONLY=NAME,NAME: these; scripts/release-check --list has the names.
release-check:
	@scripts/release-check $(if $(ONLY),--only $(ONLY))

docs:
	$(INSTALL_DEPS) build docs
	@scripts/build $(BUILD) docs $(OPTIONS)
	@echo "$(BUILD)/docs/html/index.html"

# The program prints the pages of its commands.
explorer:
	$(INSTALL_DEPS) explorer
	@scripts/explorer

site: all
	$(INSTALL_DEPS) site
	@if command -v emcc >/dev/null; then scripts/explorer; else echo "no emcc: the site has no Explorer (make explorer)"; fi
	@BASIN=$(BUILD)/basin scripts/site/make $(BUILD)/site

wheel:
	$(INSTALL_DEPS) build
	@scripts/wheel

test-python:
	$(INSTALL_DEPS) build python
	@scripts/build $(BUILD) product $(OPTIONS)
	@scripts/test-python $(BUILD)

test-wheel:
	$(INSTALL_DEPS) build python
	@scripts/build $(BUILD) product $(OPTIONS)
	@scripts/test-python --wheel $(BUILD)

dist:
	@scripts/dist $(BUILD)/dist

# What is fetched for it is fetched into its own directory.
static:
	$(INSTALL_DEPS) build static
	@scripts/static build-static $(OPTIONS)

deb:
	$(INSTALL_DEPS) build deb
	@scripts/deb build-deb

# Each is built and tested in its own directory, build-arm64 and so on.
clang musl arm64:
	$(INSTALL_DEPS) build test $@
	@scripts/platforms/$@ $(CMAKE_OPTIONS)

# Whole systems, each in its own directory; debian is what a newcomer does.
ubuntu debian:
	$(INSTALL_DEPS) deb
	@scripts/platforms/$@

clean:
	rm -rf $(BUILD) build-sanitize build-sanitize-clang build-sanitize-thread build-coverage build-valgrind build-fuzz build-tidy build-static \
	    build-deb build-bare build-python build-clang build-musl build-arm64 build-ubuntu build-debian build-release \
	    dist
