# rules.mk - the .cu files compiled by g++ for the emulated device of tests/cuda/emulated/, and their tests.
#
# Four builds, in build/cuda/NAME: plain (misaligned accesses and indices beyond an array end the process), asan, tsan,
# and race: compiled as for the thread sanitizer, and linked with tests/cuda/emulated/emulated_race.cpp in place of it.
# -Wno-unknown-pragmas: `unroll` is for nvcc. The emulator itself is never compiled under a sanitizer.
EMU := build/cuda
EMU_BUILDS := plain asan tsan race
EMU_CXX := $(filter ccache,$(CC)) g++
EMU_FLAGS := -std=c++17 -O2 -g -Wall -Wextra $(if $(filter 1,$(WERROR)),-Werror) -fPIC -fvisibility=hidden \
             -fno-strict-aliasing -fno-omit-frame-pointer -Wno-unknown-pragmas -Wno-psabi -Itests/cuda/emulated -I.
EMU_KERNEL_plain := -fsanitize=alignment,bounds -fno-sanitize-recover=all
EMU_KERNEL_asan  := -O1 -fsanitize=address,alignment -fno-sanitize-recover=all
EMU_KERNEL_tsan  := -O1 -fsanitize=thread
EMU_OBJECTS_race := tsan# whose kernels it links
EMU_LINK_plain   := $(EMU_KERNEL_plain)
EMU_LINK_asan    := -fsanitize=address,alignment
EMU_LINK_tsan    := -fsanitize=thread
EMU_MACRO_race   := -DEMU_RACE
EMU_MACRO_asan   := -DEMU_ASAN
EMU_MACRO_tsan   := -DEMU_TSAN
EMU_SELFTEST := $(basename $(wildcard tests/cuda/selftest/*.c*))
EMU_KERNELS := $(basename $(wildcard kernels/cuda/*.cu))
EMULATOR := $(basename $(notdir $(wildcard tests/cuda/emulated/*.cpp)))

# The kernels' and the engine's tests, in a program that bears sanitizers; they are not compiled under one themselves.
EMU_DRIVER := $(patsubst %.c,$(EMU)/driver/%.o,$(filter-out tests/kernels/host_memory.c,$(wildcard tests/kernels/*.c)) tests/cuda/driver/driver.c \
              $(addprefix tests/unit/,engine.c engine_bench.c engine_sampled.c engine_sums.c variants.c variants_future.c dropping.c merging.c arkv.c variant_memory.c plan.c repeat.c embed.c tiny_model.c cache.c))
$(EMU)/driver/%.o: %.c $B/flags
	@echo "  CC      $@"
	@mkdir -p $(@D)
	$(Q)$(CC) -Itests/cuda/driver $(ALL_CFLAGS) -w -MMD -MP -c $< -o $@

define emu_objects
$(EMU)/$1/%.o: %.cu
	@echo "  CXX     $$@"
	@mkdir -p $$(@D)
	$(Q)$(EMU_CXX) $(EMU_FLAGS) $(EMU_KERNEL_$1) -MMD -MP -x c++ -c $$< -o $$@
$(EMU)/$1/%.o: %.cpp
	@echo "  CXX     $$@"
	@mkdir -p $$(@D)
	$(Q)$(EMU_CXX) $(EMU_FLAGS) $(EMU_KERNEL_$1) -MMD -MP -c $$< -o $$@
endef
define emu_build
$(EMU)/$1/emulated/%.o: tests/cuda/emulated/%.cpp
	@echo "  CXX     $$@"
	@mkdir -p $$(@D)
	$(Q)$(EMU_CXX) $(EMU_FLAGS) -O3 $(EMU_MACRO_$1) -MMD -MP -c $$< -o $$@
$(if $(EMU_OBJECTS_$1),,$(call emu_objects,$1))
$(EMU)/$1/selftest: $(EMU_SELFTEST:%=$(EMU)/$(or $(EMU_OBJECTS_$1),$1)/%.o) $(EMULATOR:%=$(EMU)/$1/emulated/%.o)
	@echo "  LINK    $$@"
	$(Q)$(EMU_CXX) $(EMU_LINK_$1) $$^ -ldl -o $$@
$(EMU)/$1/lists: $(EMU)/$(or $(EMU_OBJECTS_$1),$1)/tests/cuda/lists/lists.o $(EMU_KERNELS:%=$(EMU)/$(or $(EMU_OBJECTS_$1),$1)/%.o) $(EMULATOR:%=$(EMU)/$1/emulated/%.o) $B/evicpress.a
	@echo "  LINK    $$@"
	$(Q)$(EMU_CXX) $(EMU_LINK_$1) $$^ -lm -ldl -o $$@
$(EMU)/$1/tests/bench/ceilings: $(EMU)/$(or $(EMU_OBJECTS_$1),$1)/tests/bench/ceilings.o $(EMULATOR:%=$(EMU)/$1/emulated/%.o)
	@echo "  LINK    $$@"
	$(Q)$(EMU_CXX) $(EMU_LINK_$1) $$^ -ldl -o $$@
$(EMU)/$1/evp-cuda.so: $(EMU_KERNELS:%=$(EMU)/$(or $(EMU_OBJECTS_$1),$1)/%.o) $(EMULATOR:%=$(EMU)/$1/emulated/%.o) $B/evicpress.a
	@echo "  LINK    $$@"
	$(Q)$(EMU_CXX) $(EMU_LINK_$1) -shared -Wl,-z,defs -Wl,--exclude-libs,ALL $$^ -lm -ldl -o $$@
$(EMU)/$1/driver: $(EMU_DRIVER) $B/evicpress.a
	@echo "  LINK    $$@"
	@mkdir -p $$(@D)
	$(Q)$(CC) $(filter-out -fno-% %bounds,$(EMU_LINK_$1)) $(ALL_LDFLAGS) $$^ $(LDLIBS) -o $$@
endef
$(foreach build,$(EMU_BUILDS),$(eval $(call emu_build,$(build))))

## check-cuda: the CUDA kernels on an emulated device; KERNEL="cuda_select cuda_moe" selects files, FAULTS=all adds every fault
.PHONY: check-cuda check-smoke check-nvcc mutate-cuda
EMU_ENVIRONMENT = EMU=$(EMU) BUILD=$B EMU_CXX="$(EMU_CXX)" EMU_FLAGS="$(EMU_FLAGS)" FAULTS="$(FAULTS)"
check-cuda: $(EMU_BUILDS:%=$(EMU)/%/selftest) $(EMU_BUILDS:%=$(EMU)/%/driver) $(EMU_BUILDS:%=$(EMU)/%/evp-cuda.so) \
            $B/evp-profile $B/tests/tools/answers $(EMU)/plain/lists check-nvcc
	$(Q)$(EMU_ENVIRONMENT) tests/cuda/check $(KERNEL)
## check-smoke: the kernels once, the engine's shortest tests and a whole profile; about a minute
check-smoke: $(EMU)/plain/selftest $(EMU)/plain/driver $(EMU)/plain/evp-cuda.so $B/evp-profile $B/tests/tools/answers \
             $(EMU)/plain/lists
	$(Q)$(EMU_ENVIRONMENT) tests/cuda/check --smoke
## mutate-cuda: runs every mutant of the .cu files KERNEL="cuda_select ...", lists those that no test detects
mutate-cuda: $(foreach build,plain race,$(EMU)/$(build)/driver $(EMU)/$(build)/evp-cuda.so)
	$(Q)$(EMU_ENVIRONMENT) tests/cuda/mutate $(KERNEL)

# What nvcc says of a file for all architectures, where it is installed.
$(EMU)/nvcc/%.log: kernels/cuda/%.cu kernels/cuda/cuda_primitives.h kernels/cuda/cuda_internal.h $(wildcard kernels/cuda/*.h)
	@echo "  NVCC    $@"
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(NVCC_FLAGS) -Xptxas -v -c $< -o $(@:.log=.o) >$@.part 2>&1 || { cat $@.part; exit 1; }
	$(Q)mv $@.part $@
check-nvcc: $(if $(NVCC),$(patsubst kernels/cuda/%.cu,$(EMU)/nvcc/%.log,$(wildcard kernels/cuda/*.cu)))
	$(Q)$(if $(NVCC),tests/cuda/nvcc $^,echo "nvcc: not found, so registers and spills are not checked")

-include $(shell find $(EMU) -name '*.d' 2>/dev/null)
