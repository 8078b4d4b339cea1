# User and password: from the environment or a file that is the user's alone, for that server; in no file that we write.
. "$TOP/tests/cli/load/redis.inc"
start --requirepass right-horse --user alice on '>left-horse' '~evp:*' '+@all'
redis_plan m <<-END
	a1 100 none dram
	b1 200 none far
END
try() {
	evp-load -q m.jsonl --payloads pay "$@" 2>said
	echo "status $?"
	hide <said
}
echo "none:"; try; where
echo "wrong:"; EVP_REDIS_PASSWORD=wrong-horse try
EVP_REDIS_USER=bob EVP_REDIS_PASSWORD=left-horse try
echo "of the server:"; EVP_REDIS_PASSWORD=right-horse try; where
echo "of a user:"; EVP_REDIS_USER=alice EVP_REDIS_PASSWORD=left-horse try --verify
printf '# servers\n10.0.0.1:%s bob wrong\n127.0.0.1:%s alice left-horse\n' "$port" "$port" >auth
export EVP_REDIS_AUTH_FILE="$PWD/auth"
echo "of a file:"; chmod 644 auth; try --verify
chmod 600 auth; try --verify
fetch a b
printf '127.0.0.1:1 alice left-horse\n' >auth; try --verify
printf '*  default\tright-horse\n' >auth; try --verify
EVP_REDIS_AUTH_FILE=nowhere try --verify
echo "in a uri:"
sed 's|redis://|redis://alice:left-horse@|' m.jsonl >bad.jsonl
evp-load bad.jsonl 2>&1 | hide
evp-tiers --tier name=far,uri=redis://:right-horse@a,read=1,write=1,latency=1 2>&1 | sed 's/--tier .*: tier/--tier: tier/'
grep -r -l -a -e right-horse -e left-horse -e wrong-horse . | sort
