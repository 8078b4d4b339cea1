# The example program, compiled against an installed library as its comment says, starts under any PREFIX: four threads, one store.
case $BUILD in *asan | *tsan) skip "a sanitizer must be linked into every program" ;; esac
. "$TOP/tests/cli/load/plans.inc"
make -s -C "$TOP" CONFIG="$(basename "$BUILD")" PREFIX="$PWD/stage" install-lib >make.log 2>&1 || { cat make.log >&2; exit 1; }
export PKG_CONFIG_PATH="$PWD/stage/lib/pkgconfig"
unset LD_LIBRARY_PATH
libs="$(pkg-config --cflags --libs evicpress) -Wl,-rpath,$(pkg-config --variable=libdir evicpress)"
cc -Wall -Wextra -Wconversion -Wsign-conversion -Werror "$TOP/examples/prefix.c" $libs -pthread -o prefix || exit
# a header for C++ too
printf '#include <evicpress_plan.h>\nint main() { return evp_message(0) == nullptr; }\n' >plus.cc
c++ -Wall -Wshadow -Werror plus.cc $libs -o plus || exit
./plus || exit
readelf -d prefix | sed -n 's/.*NEEDED.*\[\(libevicpress.*\)\]/\1/p'
first_plan m
# tokens LETTER N: the first N ids of every context that begins with the letter
tokens() {
	letter=$(printf '%d' "'$1")
	seq -s ' ' $((1000 * letter)) $((1000 * letter + $2 - 1))
}
{ tokens a 200; tokens a 99; tokens a 49; tokens b 200; tokens c 89; echo; } >prompts
./prefix m.jsonl <prompts | sort | uniq -c
evp-load -q m.jsonl --payloads pay || exit
./prefix m.jsonl <prompts | sort
for i in 1 2 3 4 5 6 7 8 9 10; do cat prompts; done | ./prefix m.jsonl | sort | uniq -c
printf 'x' | dd of="$(file ssd b1 kivi:bits=2)" bs=1 seek=9000 conv=notrunc 2>dd.log
tokens b 300 | ./prefix m.jsonl | sed "s|'.*/|'|; s|checksum [^ ]* not [^ ]*|checksum X not Y|"
./prefix absent.jsonl
