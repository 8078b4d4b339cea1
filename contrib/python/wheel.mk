# wheel.mk - the wheel with tools, libevicpress and the module, for any x86-64 Linux whose glibc is as new as the newest
# symbol that its files ask for; and one with evp-cuda.so. Included by the Makefile; needs patchelf.
#
# In tree/, data/ is a prefix for the tools, as `make install` fills it, with their libraries in lib/evicpress/; platlib/
# is for Python. Left to the machine: glibc and the compiler's libraries. Linked in: libarchive, since Debian's asks for a newer
# glibc than all others, and what libevicpress needs of OpenSSL and SQLite, of which a serving process has its own.
W := build/wheel
WHEEL_STATIC_tools := archive
WHEEL_STATIC_lib := crypto ssl sqlite3 hiredis
$W/link-%:
	$(Q)mkdir -p $@ && ln -sf $(foreach name,$(WHEEL_STATIC_$*),$$($(CC) -print-file-name=lib$(name).a)) $@

WHEEL_TOOLS := $(OPTION_TOOLS:$B/%=$W/bin/%)
WHEEL_LIB   := $W/lib/libevicpress.so.1
WHEEL_MEDIA := $(MEDIUM_NAMES:%=$W/lib/evp-%.so)
# The libraries that a file needs, but for those of every machine.
NEEDED = ldd $1 | awk '$$3 ~ "/" && $$1 !~ /^lib(c|m|pthread|resolv|gcc_s|stdc\+\+)\.so/ { print $$3 }' | sort -u

$(WHEEL_TOOLS): private LDFLAGS += -s -L$W/link-tools
$(WHEEL_TOOLS): $W/bin/%: $B/cmd/%.o $B/evicpress.a | $W/link-tools
	@echo "  LINK    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ $(LDLIBS) $$($(call NEEDED,$$($(CC) -print-file-name=libarchive.so))) -o $@
	$(Q)patchelf --set-rpath '$$ORIGIN/../lib/evicpress' $@
$(WHEEL_LIB) $(WHEEL_MEDIA): private LDFLAGS += -s -L$W/link-lib
$(WHEEL_LIB): $(LIBEVICPRESS_O) loader/libevicpress/libevicpress.map | $W/link-lib
	@echo "  LINK    $@"
	@mkdir -p $(@D)
	$(Q)$(LINK_LIBEVICPRESS) $$($(call NEEDED,$$($(CC) -print-file-name=libcrypto.so))) -o $@
	$(Q)patchelf --set-rpath '$$ORIGIN' $@
define wheel_medium
$W/lib/evp-$1.so: $(MEDIUM_O_$1) | $W/link-lib
	@echo "  LINK    $$@"
	@mkdir -p $$(@D)
	$(Q)$$(LINK_SO) $$^ $(MEDIUM_LIBS_$1) $(LIBEVICPRESS_LIBS) $$$$($$(call NEEDED,$$$$($$(CC) -print-file-name=libcrypto.so))) -o $$@
	$(Q)patchelf --set-rpath '$$$$ORIGIN' $$@
endef
$(foreach name,$(MEDIUM_NAMES),$(eval $(call wheel_medium,$(name))))

## wheel: dist/evicpress-VERSION-py3-none-manylinux...whl, with the tools and all that they need
.PHONY: wheel
wheel: $(WHEEL_TOOLS) $(WHEEL_LIB) $(WHEEL_MEDIA) $(SCRIPTS)
	$(Q)rm -rf $W/tree && $(MAKE) --no-print-directory install-share DESTDIR=$(abspath $W/tree) PREFIX=/data >/dev/null
	$(Q)install -D -t $W/tree/data/bin $(WHEEL_TOOLS) $(SCRIPTS) && \
	  install -D -t $W/tree/data/lib/evicpress $$($(call NEEDED,$(WHEEL_TOOLS))) && \
	  patchelf --set-rpath '$$ORIGIN' $W/tree/data/lib/evicpress/* && \
	  install -D -t $W/tree/data/lib/evp $(WHEEL_MEDIA) $$($(call NEEDED,$(WHEEL_MEDIA))) && \
	  install -D -t $W/tree/platlib/evp/lib $(WHEEL_LIB) $(WHEEL_MEDIA) $$($(call NEEDED,$(WHEEL_LIB)))
	$(Q)for file in $$($(call NEEDED,$(WHEEL_TOOLS))); do dpkg-query -S "*/$${file##*/}" | sed 's/:.*//'; done | sort -u | \
	  while read -r package; do install -D -m 644 /usr/share/doc/$$package/copyright $W/tree/data/share/doc/evicpress/$$package; done
	$(Q)mkdir -p dist && rm -f dist/evicpress-*.whl && python3 contrib/python/build_wheel.py $W/tree dist

## wheel-cuda: dist/evicpress_cuda-VERSION-py3-none-manylinux...whl, with the cuda backend; cuBLAS is another wheel
CUBLAS_LIB := nvidia/cu$(shell $(NVCC) --version 2>/dev/null | sed -n 's/.*release \([0-9]*\).*/\1/p')/lib
.PHONY: wheel-cuda
wheel-cuda: $(PLUGIN)
	$(Q)rm -rf $W/cuda && install -D -t $W/cuda/data/lib/evp $(PLUGIN) && mkdir -p dist && rm -f dist/evicpress_cuda-*.whl
	$(Q)patchelf --set-rpath "\$$ORIGIN/../evicpress$$(for minor in $$(seq 9 14); do \
	  printf ':$$ORIGIN/../python3.%s/site-packages/$(CUBLAS_LIB):$$ORIGIN/../python3.%s/dist-packages/$(CUBLAS_LIB)' $$minor $$minor; done)" \
	  $W/cuda/data/lib/evp/evp-cuda.so
	$(Q)python3 contrib/python/build_wheel.py $W/cuda dist evicpress-cuda 'evicpress==$(VERSION)' nvidia-cublas
