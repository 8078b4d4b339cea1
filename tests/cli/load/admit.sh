# The example program, compiled against an installed library, admits a context between two plans; the manifest it saves
# is checked, loaded and found. First with a plan of evp-plan, then with payloads.
case $BUILD in *asan | *tsan) skip "a sanitizer must be linked into every program" ;; esac
make -s -C "$TOP" CONFIG="$(basename "$BUILD")" PREFIX=/opt/evp DESTDIR="$PWD/stage" install-lib >make.log 2>&1 || { cat make.log >&2; exit 1; }
export PKG_CONFIG_PATH="$PWD/stage/opt/evp/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$PWD/stage" LD_LIBRARY_PATH="$PWD/stage/opt/evp/lib"
for program in admit prefix; do
	cc -Wall -Wextra -Wconversion -Wsign-conversion -Werror "$TOP/examples/$program.c" $(pkg-config --cflags --libs evicpress) -pthread -o $program || exit
done
# what a serving system must have besides: cJSON, libcrypto, SQLite; no hiredis, OpenSSL's TLS, OpenMP, no HDF5, no BLAS, no CUDA
readelf -d stage/opt/evp/lib/libevicpress.so | sed -n 's/.*NEEDED.*\[lib\([a-z]*\).*/\1/p' | grep -vx 'm\|c' | sort
tokens() { seq -s ' ' $((1000 * $(printf '%d' "'$1"))) $((1000 * $(printf '%d' "'$1") + $2 - 1)); }

echo 'of evp-plan:'
cp "$DATA/table.h5" "$DATA/tiers.json" .
evp-plan -q table.h5 --tiers tiers.json --alpha 2 -o plain.jsonl
evp-plan -q table.h5 --tiers tiers.json --alpha 2 --online -o m.jsonl
tokens n 1000 | ./admit m.jsonl next.jsonl new 5 2 none,100000,1,0 kivi:bits=2,20000,0.6,0 && evp-show --check next.jsonl
tokens n 1000 | ./admit next.jsonl again.jsonl newer 0 2 none,100000,1,0 && evp-show --check again.jsonl
evp-show --lineage again.jsonl
# the next nightly plan goes on from it; an admitted context that the table lacks is evicted
evp-plan -q table.h5 --tiers tiers.json --alpha 2 --previous next.jsonl |
	sed -n 's/.*"id":"\([^"]*\)".*"operation":"\([a-z]*\)".*/\1 \2/p'
tokens n 1000 | ./admit m.jsonl no.jsonl c0 5 2 none,100000,1,0
tokens n 1000 | ./admit plain.jsonl no.jsonl new 5 2 none,100000,1,0
tokens n 1000 | ./admit m.jsonl no.jsonl new 5 2 none,-1,1,0
ls no.jsonl 2>ls.err || echo "nothing was written"

echo 'with payloads:'
. "$TOP/tests/cli/load/live.inc"
tokens e 150 | ./admit m.jsonl next.jsonl e1 9 5 none,38400,1,0 knorm:drop=0.5,19200,0.9,0 || exit
evp-show --check next.jsonl
# the payloads of the new plan, as evp-pack would make them
sed -n 's/.*"id":"\([^"]*\)".*"n_tokens":\([0-9]*\),"config":"\([^"]*\)","tier":"\([a-z]*\)".*/\1 \2 \3 \4/p' next.jsonl | tee rows | plan packed
cat rows
evp-load -q next.jsonl --payloads pay --dry-run && evp-load -q next.jsonl --payloads pay || exit
tokens e 160 | ./prefix next.jsonl
tokens a 160 | ./prefix next.jsonl
