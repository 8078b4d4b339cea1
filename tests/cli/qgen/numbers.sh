# Options with bounds: the first number that is refused on either side, and those beside them.
echo '{"id":"a","text":"The quick brown fox jumps over the lazy dog every single morning."}' >c.jsonl
try() { evp-qgen -q c.jsonl "$@" >/dev/null 2>err || sed -n 's/^evp-qgen: //p' err; }
for option in --per-context=0 --per-context=1 --per-context=10000 --per-context=10001 --concurrency=0 --concurrency=1 \
	--concurrency=1024 --concurrency=1025 --timeout=0.009 --timeout=0.01 --timeout=86400 --timeout=86400.1 --retries=-1 \
	--retries=0 --retries=100 --retries=101 --window=511 --window=512 --token-limit=-1 --token-limit=0; do
	try "$option"
done
