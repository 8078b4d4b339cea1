# EvicPress - build, test, install.  `make help` lists the targets.
# Overrides go on the command line or in config.mk (not tracked):
#   make CONFIG=debug      release, debug, asan, tsan or clang: each builds into build/$(CONFIG)
#   make CC=clang V=1      another compiler; show every command
#   make WERROR=1          warnings are errors, as in .ci/run
#   make CUDA=0            without the backend for NVIDIA GPUs; default: with it if there is an nvcc (NVCC=/path/to/nvcc)

-include config.mk
MAKEFLAGS += -r
.DEFAULT_GOAL := all
CONFIG ?= release
# ccache if installed; it shares objects between checkouts in different folders.
CC := $(if $(filter default,$(origin CC)),$(if $(shell command -v ccache),ccache )$(if $(filter clang fuzzer,$(CONFIG)),clang,gcc),$(CC))
export CCACHE_NOHASHDIR := 1
VERSION := $(shell sed -n 's/^.define EVICPRESS_VERSION  *"\(.*\)"/\1/p' loader/libevicpress/evicpress.h)
# The version for --version: a build of a commit that is not a release adds the commit. Files and documents never do.
COMMIT  := $(shell git describe --tags --always --dirty 2>/dev/null)
BUILD_VERSION := $(VERSION)$(addprefix +,$(filter-out v$(VERSION),$(COMMIT)))
B := build/$(CONFIG)
Q := $(if $(filter 1,$(V)),,@)

# For targets that begin with set-up: as many jobs as cores, unless the user chose a number.
ALL_CORES = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

# ---- flags -------------------------------------------------------------------
# -Wno-pass-failed: clang warns when it cannot obey `omp simd`, which is only a permission here.
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings \
        -Wvla -Wformat=2 -Wundef -Wcast-qual -Wconversion -Wsign-conversion -Wdouble-promotion \
        -Wno-pass-failed $(if $(filter 1,$(WERROR)),-Werror)
# Tools parse what others wrote: -O2 as Debian's packages are compiled, and linked.
CFLAGS_release := -O2 -g -fstack-protector-strong -D_FORTIFY_SOURCE=2
CFLAGS_debug   := -O0 -g3
CFLAGS_asan    := -O1 -g -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=all
CFLAGS_tsan    := -O1 -g -fsanitize=thread
CFLAGS_clang   := -O1 -g
CFLAGS_fuzzer  := -O1 -g -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined
ifeq ($(CFLAGS_$(CONFIG)),)
$(error CONFIG is release, debug, asan, tsan or clang, not '$(CONFIG)')
endif
# Hidden by default: libevicpress.so exports only the functions that its public headers mark.
ALL_CFLAGS  = -std=c11 $(WARN) $(CFLAGS_$(CONFIG)) -fPIC -fvisibility=hidden -I. -D_GNU_SOURCE \
              -include base/banned.h $(CFLAGS)
HARDENED_release := -Wl,-z,relro,-z,now
ALL_LDFLAGS = $(CFLAGS_$(CONFIG)) $(HARDENED_$(CONFIG)) -fopenmp -Wl,--as-needed $(LDFLAGS)
# --as-needed: a tool depends only on the libraries whose code it uses, so evp-plan needs no BLAS.
LDLIBS = -ldnnl $(HDF5_LIBS) -larchive -lcurl -lcjson -lpcre2-8 -lutf8proc -lsqlite3 -lcrypto -lpthread -lm
HDF5_CFLAGS := $(shell pkg-config --cflags hdf5 2>/dev/null)
HDF5_LIBS   := $(shell pkg-config --libs hdf5 2>/dev/null || echo -lhdf5)

# ---- objects and programs ----------------------------------------------------
# The folders of tests/rooms; a part of kernels/ has no line of its own. Media and tools have rules of their own.
DIRS  := $(filter-out loader/redis cmd,$(shell sed 's/:.*//' tests/rooms)) kernels/reference kernels/cpu kernels/cuda
# Files for instructions that only some x86-64 processors have.
X86_C := $(if $(findstring x86_64,$(shell $(CC) -dumpmachine)),,%_avx2.c %_avx512.c %_avx512bf16.c %_amx.c)
LIB_C := $(filter-out $(X86_C),$(wildcard $(DIRS:%=%/*.c))) $(filter-out cmd/evp-%,$(wildcard cmd/*.c))
LIB_O := $(LIB_C:%.c=$B/%.o)
SCRIPTS := $B/evp $B/evp-demo $B/evp-models
TOOLS := $(patsubst cmd/%.c,$B/%,$(wildcard cmd/evp-*.c)) $(SCRIPTS)
NVCC ?= $(shell command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
CUDA ?= $(if $(NVCC),1,0)
# Without sanitizers: tests/cuda runs it under sanitizers on an emulated device.
PLUGIN := $(if $(filter 0,$(CUDA)),,$(if $(filter release,$(CONFIG)),$B/evp-cuda.so))
# Media other than folders, loader/NAME/: each is one object, opened on demand (loader/store/medium.h).
MEDIUM_NAMES := redis
MEDIUM_LIBS_redis := -lhiredis -lssl
MEDIA := $(MEDIUM_NAMES:%=$B/evp-%.so)
FUZZ  := $(filter-out replay,$(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c)))

## all: every tool, libevicpress, its media, the cuda backend if there is an nvcc, into build/release
.PHONY: all study figures check check-layers check-format check-unit check-cli check-fuzz clean demo bench format fuzz help install \
        man setup test oracles FORCE
all: $(TOOLS) $B/libevicpress.so $(MEDIA) $(PLUGIN)

$(filter-out $(SCRIPTS),$(TOOLS)): $B/%: $B/cmd/%.o $B/evicpress.a
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) $^ $(LDLIBS) -o $@
$(SCRIPTS): $B/%: cmd/% $B/version
	@mkdir -p $(@D)
	$(Q)sed 's|@VERSION@|$(BUILD_VERSION)|' $< >$@ && chmod 755 $@

# Refuse duplicate names: an archive would silently give a tool either of two functions with the same name.
$B/evicpress.a: $(LIB_O)
	@echo "  AR      $@"
	@twice=$$(nm -g --defined-only $^ | awk '$$2 ~ /[TDBR]/ { print $$3 }' | sort | uniq -d); \
	  [ -z "$$twice" ] || { echo "defined in two files: $$twice"; exit 1; }
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# The library for serving systems: only the objects of these folders, linked only to cJSON, libcrypto and SQLite, so it
# cannot depend on a model, GPU, BLAS or OpenMP. Only the functions of its public headers are visible.
LIBEVICPRESS_DIRS := base codes formats planner loader/store loader/libevicpress
LIBEVICPRESS_LIBS := -lcjson -lcrypto -lsqlite3 -lpthread -lm
LIBEVICPRESS_O := $(patsubst %.c,$B/%.o,$(filter-out $(X86_C),$(wildcard $(LIBEVICPRESS_DIRS:%=%/*.c))))
LINK_SO = $(CC) $(CFLAGS_$(CONFIG)) $(HARDENED_$(CONFIG)) -shared -Wl,--no-undefined -Wl,--as-needed -Wl,--exclude-libs,ALL $(LDFLAGS)
LINK_LIBEVICPRESS = $(LINK_SO) -Wl,-soname,libevicpress.so.1 -Wl,--version-script=loader/libevicpress/libevicpress.map \
                    $(LIBEVICPRESS_O) $(LIBEVICPRESS_LIBS)
$B/libevicpress.so: $(LIBEVICPRESS_O) loader/libevicpress/libevicpress.map
	@echo "  LINK    $@"
	$(Q)$(LINK_LIBEVICPRESS) -o $@
	$(Q)ln -sf libevicpress.so $B/libevicpress.so.1

# A medium has hidden copies of the libevicpress objects that it uses.
$B/libevicpress-objects.a: $(LIBEVICPRESS_O)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
define medium
MEDIUM_O_$1 := $(patsubst %.c,$B/%.o,$(wildcard loader/$1/*.c)) $B/libevicpress-objects.a
$B/evp-$1.so: $$(MEDIUM_O_$1)
	@echo "  LINK    $$@"
	$(Q)$(LINK_SO) $$^ $(MEDIUM_LIBS_$1) $(LIBEVICPRESS_LIBS) -o $$@ && chmod 644 $$@
endef
$(foreach name,$(MEDIUM_NAMES),$(eval $(call medium,$(name))))

# The cuda backend: one object that the tools open on demand (kernels/cuda/cuda.h); they are not linked to CUDA. For
# compute capability 8.x, 9.0, 10.0 and 12.x, and for others as PTX, which the driver compiles when it is first loaded.
CUDA_ARCHS ?= -gencode arch=compute_80,code=[sm_80,sm_100,sm_120,compute_80] -gencode arch=compute_90a,code=sm_90a
NVCC_FLAGS = -std=c++17 -O3 -lineinfo -Ikernels/cuda -I. $(CUDA_ARCHS) $(if $(filter 1,$(WERROR)),-Werror all-warnings) \
             -Xcompiler -Wall,-Wextra,-fPIC,-fvisibility=hidden,-fopenmp
NVCC_LIB = $(abspath $(dir $(NVCC))../lib64)
PLUGIN_O := $(patsubst %.cu,$B/%.o,$(wildcard kernels/cuda/*.cu))
$B/evp-cuda.so: $(PLUGIN_O) $B/base/err.o
	@echo "  LINK    $@"
	$(Q)$(NVCC) -shared -Xlinker --exclude-libs,ALL -Xlinker -rpath,$(NVCC_LIB) $^ -lcublasLt -lgomp -o $@ && chmod 644 $@
$(PLUGIN_O): $B/%.o: %.cu $B/cuda-flags
	@echo "  NVCC    $<"
	@mkdir -p $(@D)
	$(Q)$(filter ccache,$(CC)) $(NVCC) $(NVCC_FLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@
CUDA_FLAGS = $(NVCC) $(filter-out -Werror all-warnings,$(NVCC_FLAGS))
$B/cuda-flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(CUDA_FLAGS)' | cmp -s - $@ || printf '%s\n' '$(CUDA_FLAGS)' >$@

$B/%.o: %.c $B/flags
	@echo "  CC      $<"
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

# Arithmetic on tensors is compiled for speed. It does not test floating-point exceptions; otherwise loops with a
# condition would not be vectorised (-fno-trapping-math). *_avx2.c, *_avx512.c, *_avx512bf16.c and *_amx.c may use the
# instructions in their names, behind a check at run time. Elsewhere -O2.
$B/kernels/%.o $B/methods/%.o $B/variants/%.o $B/engine/model/dequant.o $B/engine/model/packed.o $B/loader/libevicpress/row_sink.o $B/loader/libevicpress/evp_encode.o: private CFLAGS_release := -O3 -g -fno-trapping-math
$B/kernels/%.o: private ALL_CFLAGS += -fopenmp
# gcc 12 for arm64 fails in its vectoriser here.
$B/kernels/reference/reference_compress.o: private ALL_CFLAGS += $(if $(X86_C),-fno-tree-vectorize)
$B/%_avx2.o: private ALL_CFLAGS += -mavx2 -mfma -ffp-contract=fast
$B/%_avx512.o: private ALL_CFLAGS += -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma \
                                         -mprefer-vector-width=512 -ffp-contract=fast
$B/%_avx512bf16.o: private ALL_CFLAGS += -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512bf16 -mfma \
                                             -mprefer-vector-width=512 -ffp-contract=fast
$B/%_amx.o: private ALL_CFLAGS += -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512bf16 -mfma -mamx-tile -mamx-bf16 \
                                      -mprefer-vector-width=512 -ffp-contract=fast
$B/profiler/table/table_image.o $B/profiler/table/table_write.o: private ALL_CFLAGS += $(HDF5_CFLAGS)
$B/base/opt.o: private ALL_CFLAGS += -DBUILD_VERSION='"$(BUILD_VERSION)"' -DRELEASE_VERSION='"$(VERSION)"'

# Names what is not installed, in one line.
HEADERS := archive.h cjson/cJSON.h curl/curl.h dnnl.h hdf5.h hiredis/hiredis.h openssl/evp.h pcre2.h sqlite3.h \
           utf8proc.h xxhash.h
FIND_HEADERS = for header in $(HEADERS); do echo "\#include <$$header>" | \
  $(CC) $(HDF5_CFLAGS) -DPCRE2_CODE_UNIT_WIDTH=8 $(CFLAGS) -E - >/dev/null 2>&1 || missing="$$missing $$header"; done; \
  [ -z "$$missing" ] || { echo "packages are missing: \`make setup\` installs them ($(CC) does not find$$missing)"; false; }

# Rewritten only when a flag changes; every object depends on it. Warnings that are errors make no other object.
FLAGS = $(CC) $(filter-out -Werror,$(ALL_CFLAGS)) $(HDF5_CFLAGS) $(LDLIBS) $(DIRS)
$B/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(FLAGS)' | cmp -s - $@ || { $(FIND_HEADERS) && printf '%s\n' '$(FLAGS)' >$@ && echo "  CONFIG  $(CONFIG)"; }
$B/version: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(BUILD_VERSION)' | cmp -s - $@ || printf '%s\n' '$(BUILD_VERSION)' >$@
$B/base/opt.o: $B/version

# ---- tests -------------------------------------------------------------------
# Media where tests/unit/all and the benchmarks find them, like programs in PREFIX/bin; and a foreign one.
TEST_MEDIA := $(MEDIUM_NAMES:%=$B/tests/lib/evp/evp-%.so) $B/tests/lib/evp/evp-lmcache.so
$B/tests/lib/evp/evp-lmcache.so: $B/tests/plugins/lmcache.so
$(MEDIUM_NAMES:%=$B/tests/lib/evp/evp-%.so): $B/tests/lib/evp/%: $B/%
$(TEST_MEDIA):
	@mkdir -p $(@D)
	$(Q)cp $< $@
UNIT_O := $(patsubst %.c,$B/%.o,$(wildcard tests/unit/*.c tests/kernels/*.c))
$B/tests/unit/all: $(UNIT_O) $B/evicpress.a | $(TEST_MEDIA)
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -lcriterion $(LDLIBS) -lmicrohttpd -o $@
# Small programs that make files for tests.
TEST_TOOLS := $(patsubst tests/tools/%.c,$B/tests/tools/%,$(wildcard tests/tools/*.c))
$(TEST_TOOLS): $B/tests/tools/%: $B/tests/tools/%.o $B/evicpress.a
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) $^ $(LDLIBS) -o $@
# Shared objects that tools open in tests.
TEST_PLUGINS := $(patsubst tests/plugins/%.c,$B/tests/plugins/%.so,$(wildcard tests/plugins/*.c))
$(TEST_PLUGINS): %.so: %.o $B/evicpress.a
	@echo "  LINK    $@"
	$(Q)$(CC) $(CFLAGS_$(CONFIG)) $(HARDENED_$(CONFIG)) -shared -Wl,--exclude-libs,ALL $(LDFLAGS) $^ -o $@
$B/tests/http/mock: $B/tests/http/mock.o $B/evicpress.a
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) $^ $(LDLIBS) -lmicrohttpd -o $@
# The fuzz target for Redis's replies: with the medium, and its own function to connect.
$B/tests/fuzz/redis $B/explore/redis: private LDLIBS := $(MEDIUM_LIBS_redis) $(LDLIBS)
$B/tests/fuzz/redis $B/explore/redis: $(patsubst %.c,$B/%.o,$(wildcard loader/redis/*.c))
$B/tests/fuzz/%: $B/tests/fuzz/%.o $B/tests/fuzz/replay.o $B/evicpress.a
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) $(LDLIBS) -o $@
# Programs run by scripts: tests/bench/NAME.c, tests/golden/NAME/PROGRAM.c. Those for the planner share the instances.
PROGRAMS := $(patsubst %.c,$B/%,$(filter-out tests/bench/instance.c tests/bench/gemm_rate.c tests/bench/bench.c tests/bench/ops.c,$(wildcard tests/bench/*.c tests/golden/*/*.c)))
$B/tests/bench/plan $B/tests/bench/table $B/tests/bench/admit: $B/tests/bench/instance.o
$B/tests/bench/engine $B/tests/bench/profile: $B/tests/bench/gemm_rate.o
$B/tests/bench/profile $B/tests/bench/job: $B/tests/bench/bench.o
$B/tests/bench/job: $B/tests/bench/ops.o
$B/tests/bench/media: | $(TEST_MEDIA)
$(PROGRAMS): $B/%: $B/%.o $B/evicpress.a
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) $(LDLIBS) -o $@
# The ceilings of a GPU, without EvicPress code: for scripts/gpu-first.
$B/tests/bench/ceilings: tests/bench/ceilings.cu
	@echo "  NVCC    $<"
	@mkdir -p $(@D)
	$(Q)$(or $(NVCC),nvcc) -std=c++17 -O2 $(CUDA_ARCHS) $< -lcublasLt -o $@
$B/explore/%: $B/tests/fuzz/%.o $B/evicpress.a
	@echo "  LINK    $@"
	@mkdir -p $(@D)
	$(Q)$(if $(LIB_FUZZING_ENGINE),$(CXX) $(CXXFLAGS),$(CC)) $(ALL_LDFLAGS) $(or $(LIB_FUZZING_ENGINE),-fsanitize=fuzzer) $(filter %.o,$^) $(filter %.a,$^) $(LDLIBS) -o $@

## check: all tests without network or model, in under a minute
# Programs and files for the groups of tests.
CHECKED := all $(TEST_TOOLS) $(TEST_PLUGINS) $B/tests/unit/all $B/tests/http/mock $(FUZZ:%=$B/tests/fuzz/%)
GROUPS := layers style unit cli fuzz
.PHONY: groups
check: $(CHECKED)
	@$(MAKE) --no-print-directory groups
# Every group runs, even after a failure.
groups:
	@results=$$(mktemp -d); trap 'rm -rf $$results' EXIT; \
	  for group in $(GROUPS); do tests/group $$results $$group $(MAKE) --no-print-directory check-$$group; done; \
	  tests/summary $$results $(TEST_BEGAN)
check-layers:
	$(Q)tests/layers
	$(Q)tests/headers "$(CC)"
	$(Q)tests/recipes
	$(Q)tests/covers
	$(Q)tests/walk
# Style of files and functions; tests/style planner/ checks one folder.
.PHONY: check-style
check-style:
	$(Q)tests/style
check-unit: $B/tests/unit/all
	$(Q)tests/unit/run $B
check-cli: all $(TEST_TOOLS) $(TEST_PLUGINS) $B/tests/http/mock
	$(Q)tests/cli/run $B
# libevicpress's locks: programs with threads, only from libevicpress's objects, which have no OpenMP: ThreadSanitizer
# does not know its barriers. Their plans come from the tools of this build.
THREADED := $B/threads/admit-threads $B/threads/read-load
$(THREADED): $B/threads/%: $B/tests/tools/%.o $(LIBEVICPRESS_O)
	@echo "  LINK    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_$(CONFIG)) $(LDFLAGS) $^ $(LIBEVICPRESS_LIBS) -o $@
.PHONY: check-tsan threaded
threaded: $(THREADED)
check-tsan: $B/evp-plan $B/evp-load $B/evp-show $B/tests/tools/make-load
	@$(MAKE) --no-print-directory CONFIG=tsan threaded
	$(Q)tests/tsan $B build/tsan
## programs: compile all tools, tests, fuzz targets and benchmarks
.PHONY: programs
programs: $(CHECKED) $(PROGRAMS) $(THREADED)
# Code where the address sanitizer can find errors: parsers, memory, and the loader's files. Only for CONFIG=asan. Long
# arithmetic tests run only in CONFIG=asan check.
.PHONY: check-asan
check-asan: $(CHECKED)
	@results=$$(mktemp -d); trap 'rm -rf $$results' EXIT; \
	  tests/group $$results unit tests/unit/run $B quick; \
	  tests/group $$results fuzz $(MAKE) --no-print-directory check-fuzz; \
	  tests/group $$results cli tests/cli/run $B load show import; \
	  tests/summary $$results
check-fuzz: $(FUZZ:%=$B/tests/fuzz/%)
	$(Q)tests/fuzz/run $B $(FUZZ)
## test: all set-up, then every test except the long ones of the emulated GPU
test:
	@began=$$(date +%s); scripts/setup && \
	  $(MAKE) $(ALL_CORES) --no-print-directory test-after-setup TEST_GROUPS="$(GROUPS) smoke golden" TEST_BEGAN=$$began
## test-all: the same with all of them, for changes to kernels, engine or methods
test-all:
	@began=$$(date +%s); scripts/setup && \
	  $(MAKE) $(ALL_CORES) --no-print-directory test-after-setup TEST_GROUPS="$(GROUPS) cuda golden" EVP_TEST=all TEST_BEGAN=$$began
.PHONY: test-all test-after-setup check-golden
test-after-setup: $(CHECKED)
	@$(MAKE) --no-print-directory build/cuda/plain/evp-cuda.so
	@$(MAKE) --no-print-directory groups GROUPS="$(TEST_GROUPS)"
check-golden:
	$(Q)tests/golden/run $B
## check-wheel: the wheel works in a new Python environment, without this checkout's builds
.PHONY: check-wheel
check-wheel: wheel
	$(Q)tests/wheel
## oracles: compare with transformers, kvpress, sentence-transformers (installs 6 GB into build/venv)
oracles: all $(TEST_TOOLS)
	$(Q)tests/golden/oracles $B
## fuzz: run the libFuzzer targets, FUZZ_SECONDS (60) each; FUZZ="gguf table" selects some
FUZZ_SECONDS ?= 60
fuzz:
	$(Q)tests/fuzz/explore $(FUZZ_SECONDS) $(FUZZ)
## mutate: which wrong lines of C the tests see, FAULTS (200) in each of MUTATE="base planner"
MUTATE ?= base
FAULTS ?= 200
.PHONY: mutate
mutate: $(CHECKED)
	$(Q)tests/mutate $(MUTATE) --faults $(FAULTS)
## bench: speed compared with peers, as ratios (installs them into build/venv)
bench: all
	$(Q)tests/bench/run $B
## study: compare the papers' methods on STUDY_TEXTS texts of each LongBench file in STUDY_ZIP, with STUDY_MODELS; hours
STUDY_ZIP ?= ../shared/datasets/longbench_subset.zip
STUDY_TEXTS ?= 3
study: all
	$(Q)EVP_STUDY_TEXTS=$(STUDY_TEXTS) tests/bench/study $B $(STUDY_ZIP) build/study docs $(STUDY_MODELS)
## figures: the papers' figures (docs/paper.md) from the recorded answers of `make study`; minutes
figures: all
	$(Q)tests/bench/figures $B docs/study docs

include tests/cuda/rules.mk

# ---- use ---------------------------------------------------------------------
## setup: install the Debian packages and the two default models
setup:
	@scripts/setup
## demo: all set-up, then the whole pipeline on four licence texts
demo:
	@scripts/setup
	@$(MAKE) $(ALL_CORES) --no-print-directory $(if $(wildcard /dev/nvidia0),,CUDA=0) all
	@$B/evp demo build/demo

SOURCES = $(shell git ls-files '*.c' '*.h')
## format: clang-format every tracked source in place (scripts/setup ci installs it)
format:
	clang-format -i $(SOURCES)
check-format:
	$(Q)clang-format --dry-run --Werror $(SOURCES)

MANS := $(TOOLS:$B/%=$B/man/%.1)
## man: the manual pages of the tools, into build/ for `man` and into docs/man/ for the web
man: $(MANS)
	$(Q)for tool in $(TOOLS); do scripts/manpage markdown $$tool $(VERSION) >docs/man/$${tool##*/}.md || exit; done
$B/man/%.1: $B/% scripts/manpage
	@mkdir -p $(@D)
	$(Q)scripts/manpage roff $< $(VERSION) >$@

# Completion of commands for three shells, from the option tables: one file each, linked to every tool's name.
OPTION_TOOLS := $(filter-out $(SCRIPTS),$(TOOLS))

PREFIX ?= /usr/local
## install: tools, cuda backend, man pages, completion, libevicpress with media, header and pkg-config file, under PREFIX (/usr/local)
install: all install-lib install-share
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(TOOLS) $(DESTDIR)$(PREFIX)/bin
	$(if $(PLUGIN),install -m 644 $(PLUGIN) $(DESTDIR)$(PREFIX)/lib/evp)
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed 's|@PREFIX@|$(PREFIX)|' contrib/nightly/evp-nightly@.service.in >$(DESTDIR)$(PREFIX)/lib/systemd/system/evp-nightly@.service
	install -m 644 contrib/nightly/evp-nightly@.timer $(DESTDIR)$(PREFIX)/lib/systemd/system
.PHONY: install-share install-completion
install-share: $(MANS) install-completion
	install -d $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/evp
	install -m 644 $(MANS) $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 formats/manifest.schema.json contrib/nightly/nightly.json contrib/nightly/evp-nightly.cron \
	  contrib/nightly/evp-nightly.logrotate contrib/monitoring/dashboard.json contrib/monitoring/alerts.yml $(DESTDIR)$(PREFIX)/share/evp
	install -m 755 contrib/nightly/nightly.sh $(DESTDIR)$(PREFIX)/share/evp
install-completion: $(OPTION_TOOLS)
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions \
	  $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	scripts/completion bash $(OPTION_TOOLS) >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/evp
	scripts/completion zsh $(OPTION_TOOLS) >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_evp
	scripts/completion fish $(OPTION_TOOLS) >$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/evp.fish
	for tool in $(notdir $(OPTION_TOOLS)); do \
	  ln -sf evp $(DESTDIR)$(PREFIX)/share/bash-completion/completions/$$tool && \
	  ln -sf evp.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/$$tool.fish || exit; done
# The files for a serving system.
.PHONY: install-lib
install-lib: $B/libevicpress.so $(MEDIA)
	install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/lib/evp $(DESTDIR)$(PREFIX)/include
	install -m 644 $(MEDIA) $(DESTDIR)$(PREFIX)/lib/evp
	install -m 755 $B/libevicpress.so $(DESTDIR)$(PREFIX)/lib/libevicpress.so.1
	ln -sf libevicpress.so.1 $(DESTDIR)$(PREFIX)/lib/libevicpress.so
	install -m 644 loader/libevicpress/evicpress.h loader/libevicpress/evicpress_plan.h methods/evp_method.h $(DESTDIR)$(PREFIX)/include
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' loader/libevicpress/evicpress.pc.in >$(DESTDIR)$(PREFIX)/lib/pkgconfig/evicpress.pc

## dist: dist/evicpress-VERSION.tar.gz of HEAD, and what it consists of, as SPDX; the same commit makes the same files
.PHONY: dist
dist:
	$(Q)mkdir -p dist && git archive --prefix=evicpress-$(VERSION)/ HEAD | gzip -9n >dist/evicpress-$(VERSION).tar.gz
	$(Q)scripts/spdx dist/evicpress-$(VERSION).tar.gz $(VERSION) >dist/evicpress-$(VERSION).spdx.json

## deb: dist/evicpress_VERSION_ARCH.deb of HEAD, for the Debian release of this machine
.PHONY: deb
DEB := build/deb/evicpress-$(VERSION)
deb: dist
	$(Q)rm -rf build/deb dist/*.deb && mkdir -p build/deb && tar -xzf dist/evicpress-$(VERSION).tar.gz -C build/deb
	$(Q)cp -r contrib/debian $(DEB) && printf '%s\n' "evicpress ($(VERSION)-1~$$(. /etc/os-release && echo $$ID$$VERSION_ID)) unstable; urgency=medium" '' \
	  '  * The changes are in changelog.gz.' '' " -- $$(sed -n 's/^Maintainer: //p' contrib/debian/control)  $$(git log -1 --format=%cD)" \
	  >$(DEB)/debian/changelog
	$(Q)cd $(DEB) && env -u MAKEFLAGS DEB_BUILD_OPTIONS=noautodbgsym dpkg-buildpackage -b -us -uc
	$(Q)cp build/deb/*.deb dist

include contrib/python/wheel.mk

## clean: remove build/
clean:
	rm -rf build
## help: this list
help:
	@sed -n 's/^## //p' Makefile tests/cuda/rules.mk | awk -F': ' '{printf "  %-10s %s\n", $$1, $$2}'

.SECONDARY:
-include $(shell find $B -name '*.d' 2>/dev/null)
