# A tier on a Redis server: placed, found and fetched, moved to a folder and back, rolled back; nothing is left behind.
. "$TOP/tests/cli/load/redis.inc"
start
redis_plan m <<-END
	a1 100 none dram
	b1 200 kivi:bits=2 far
	c1 90 none far
	d1 8300 none far
	e1 10 none recompute
END
evp-load -q m.jsonl --payloads pay || exit
where
evp-show --check far >checked && echo "all of it is there"
ls far
fetch a b c d e
cp m.jsonl first.jsonl
redis_plan m <<-END
	a1 100 none far
	b1 200 kivi:bits=2 far
	c1 90 none dram
	d1 8300 none recompute
	e1 10 none far
END
rm -r pay.away 2>/dev/null
evp-load --dry-run m.jsonl --payloads pay 2>dry | sort
evp-load -q m.jsonl --payloads pay || exit
where
fetch a b c d e
evp-load m.jsonl 2>&1 | grep nothing
echo "rolled back:"
evp-load -q --rollback m.jsonl --payloads pay || exit
where
cp first.jsonl m.jsonl
fetch a b c d e
# What no manifest of this store names is not there.
redis_plan m <<-END
	a1 100 none dram
END
evp-load -q m.jsonl --payloads pay && evp-load -q first.jsonl --payloads pay && evp-load -q m.jsonl && evp-load -q m.jsonl
redis_plan last <<-END
	e1 10 none far
END
evp-load -q last.jsonl --payloads pay && evp-show --check far >checked && where
cli set evp:mine 1 >set.log
cli --scan --pattern 'evp:*' | hide | sort | uniq -c
