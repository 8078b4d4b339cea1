#!/bin/bash -eu
# build.sh - OSS-Fuzz calls it to build: compiles the fuzz targets with its compiler, flags and engine ($CC, $CXX, $CFLAGS,
# $CXXFLAGS, $LIB_FUZZING_ENGINE) into $OUT, each with its inputs of tests/fuzz/corpus as seeds. $OUT/lib has the shared
# libraries, since the machines that run the targets have none but glibc. tests/fuzz/oss-fuzz/check does the same here.
cd "$SRC/evicpress"
build=$WORK/evicpress
mkdir -p "$build" "$OUT/lib"
# OSS-Fuzz's clang comes without OpenMP; the distribution's fits.
cp -L /usr/lib/llvm-*/lib/libomp.so /usr/lib/llvm-*/lib/clang/*/include/omp.h "$build"
targets=$(cd tests/fuzz/corpus && ls)
# An old RPATH, not a RUNPATH: it also holds for what the libraries need.
make -j"$(nproc)" CONFIG=clang CUDA=0 B="$build" CFLAGS="$CFLAGS -I$build" \
	LDFLAGS="$CFLAGS -L$build -Wl,--disable-new-dtags,-rpath,'\$\$ORIGIN/lib'" $(printf "$build/explore/%s " $targets)
for target in $targets; do
	cp "$build/explore/$target" "$OUT"
	zip -qj "$OUT/${target}_seed_corpus.zip" "tests/fuzz/corpus/$target"/*
	ldd "$build/explore/$target" | awk '$2 == "=>" { print $3 }' | grep -vE '/lib(c|m|dl|rt|pthread|resolv)\.so' | xargs cp -nLt "$OUT/lib"
done
