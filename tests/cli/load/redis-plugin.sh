# Tools and libevicpress need neither hiredis nor libssl: evp-redis.so does, which is opened for a tier on Redis. One that is
# missing or wrong has its sentence, and costs what a server that is away costs: other tiers are loaded, found, changed.
. "$TOP/tests/cli/load/redis.inc"
[ "$python" ] || skip "a sanitizer must be linked into every program"
needs() { for file; do readelf -d "$file"; done | grep -oE 'NEEDED.*lib(hiredis|ssl)' | sed 's/.*lib//' | sort -u | xargs echo; }
set -- "$BUILD/libevicpress.so"
for name in load pack plan show tiers; do set -- "$@" "$BUILD/evp-$name"; done
echo "tools and libevicpress: $(needs "$@")"
echo "the medium: $(needs "$BUILD/evp-redis.so")"
nm -D --defined-only "$BUILD/evp-redis.so" | grep -o 'evp.*'
start
redis_plan m <<-END
	a1 100 none dram
	b1 100 none far
END
mkdir bin lib
cp "$BUILD/evp-load" "$BUILD/evp-show" bin
cp "$BUILD/libevicpress.so" lib
cp "$BUILD/evp-redis.so" . # the working folder is not looked at
hide_places() { hide | sed "s|$BUILD|BUILD|g; s|interface is [0-9.]*, not [0-9.]*|interface is X, not Y|; s|so: [^']*:.*, 1 context|so: WHY, 1 context|"; }
try() {
	bin/evp-load -q m.jsonl --payloads pay 2>&1 | hide_places
	bin/evp-load -q m.jsonl --payloads pay 2>load.err
	echo "status $?"
}
# serve LIBRARY: the library is opened under a relative path, and asked from another working folder.
serve() {
	EVP_LIBRARY=$1 "$python" - <<-'END' 2>&1 | hide_places
		import evp, os, sys
		evp.library_version()
		os.chdir("pay")
		packed = [open(name, "rb").read() for name in os.listdir()]
		with evp.open("../m.jsonl") as store:
		    for letter in "ab":
		        found = store.find([1000 * ord(letter) + i for i in range(1000)])
		        try:
		            print(letter, found and f"on {found.tier}, right: {bytes(store.fetch(found)) in packed}")
		        except evp.Error as e:
		            print(letter, type(e).__name__, e)
		    for id, tier in ("a1", "far"), ("b1", "dram"):
		        first = b"".join((1000 * ord(id[0]) + i).to_bytes(4, "little") for i in (0, 1))
		        try:
		            store.put(id, tier, next(data for data in packed if first in data))
		            print("put", id, tier)
		        except evp.Error as e:
		            print("put", id, tier, type(e).__name__, e)
	END
}
echo 'missing:'
try; where
evp-load -q m.jsonl --payloads pay # somebody else has it
bin/evp-show --check far 2>&1 | hide
bin/evp-show --check far >show.out 2>&1
echo "status $?"
serve lib/libevicpress.so
echo 'no object:'
mkdir -p lib/evp
echo 'this is text' >lib/evp/evp-redis.so
try
echo 'another object:'
cp "$BUILD/libevicpress.so" lib/evp/evp-redis.so
try
echo 'another version:'
cp "$BUILD/tests/plugins/old_medium.so" lib/evp/evp-redis.so
try
echo 'installed:'
cp "$BUILD/evp-redis.so" lib/evp/
try; where
serve lib/libevicpress.so
