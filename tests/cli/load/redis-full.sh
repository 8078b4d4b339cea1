# A server that is full: known before, or met in the middle; the state before is in place again either way.
. "$TOP/tests/cli/load/redis.inc"
start --maxmemory 4mb --maxmemory-policy noeviction
redis_plan m <<-END
	a1 4000 none far
	b1 100 none dram
END
evp-load -q m.jsonl --payloads pay || exit
redis_plan large <<-END
	a1 4000 none far
	b1 100 none dram
	c1 16000 none far
END
evp-load -q large.jsonl --payloads pay 2>said
echo "status $?"
hide <said | sed 's/has [0-9]* free/has N free/'
where
# Another user of the server fills it after the load has looked: INFO is refused, so nothing is known before.
cli acl setuser blind on '>secret' '~*' '+@all' -info >acl.log
EVP_REDIS_USER=blind EVP_REDIS_PASSWORD=secret evp-load -q large.jsonl --payloads pay 2>said
echo "status $?"
hide <said
where
fetch a b c
cli config set maxmemory 0 >config.log
cli --scan --pattern 'evp:*{*' | wc -l
evp-load -q large.jsonl --payloads pay || exit
where
fetch c
