# A server that is not there, or does not answer: its tier is left out with one sentence, the others go on; and a load
# that met it half way goes on when it is back.
. "$TOP/tests/cli/load/redis.inc"
redis_plan m <<-END
	a1 100 none dram
	b1 200 none far
	c1 90 none far
END
try() {
	evp-load -q "$@" 2>said
	echo "status $?"
	hide <said
}
try m.jsonl --payloads pay; where; fetch a b
start
try m.jsonl --payloads pay; where; fetch a b
export EVP_REDIS_TIMEOUT=0.3
kill -STOP $server
echo "stopped:"; try m.jsonl; fetch a b; evp-show --check far 2>&1 | hide
try --rollback m.jsonl --payloads pay; where
kill -CONT $server
kill_server
echo "gone:"; try m.jsonl --payloads pay; fetch a b; try --json m.jsonl
cp m.jsonl first.jsonl
redis_plan m <<-END
	b1 200 none dram
	c1 90 none recompute
END
try m.jsonl --payloads pay; where; fetch a b c
start
try m.jsonl --payloads pay; where; fetch a b c
