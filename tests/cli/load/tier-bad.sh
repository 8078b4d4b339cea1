# Tiers that are gone, are not folders, are the same folder, are in use, or are too small for the plan.
. "$TOP/tests/cli/load/plans.inc"
mkdir disk
try() {
	evp-load -q "$1" --payloads pay
	echo "status $?"
}
{
	printf 'tier dram dram %s 60000\n' "$PWD/dram"
	printf 'tier ssd file %s 60000\n' "$PWD/disk/ssd"
	printf 'context a1 100 none dram\ncontext b1 100 none ssd\n'
} >spec
"$BUILD/tests/tools/make-load" m.jsonl pay <spec
rmdir disk; try m.jsonl
placed # the other tier is loaded
mkdir disk; : >disk/ssd; try m.jsonl
rm disk/ssd; mkdir disk/ssd; flock disk/ssd/evp-lock evp-load -q m.jsonl --payloads pay; echo "status $?"
sed 's|file .*/ssd|redis redis://localhost|' spec | "$BUILD/tests/tools/make-load" redis.jsonl pay; try redis.jsonl
sed "s|$PWD/disk/ssd|$PWD/dram|" spec | "$BUILD/tests/tools/make-load" same.jsonl pay; try same.jsonl
sed "s|$PWD/disk/ssd|$PWD/disk/../dram|" spec | "$BUILD/tests/tools/make-load" same.jsonl pay; try same.jsonl
sed "s/dram 60000/dram 60000/; s/ssd 60000/ssd 25599/" spec | "$BUILD/tests/tools/make-load" small.jsonl pay; try small.jsonl
mkdir -p real; ln -s real link
sed "s|$PWD/dram|$PWD/real|; s|$PWD/disk/ssd|$PWD/link|" spec | "$BUILD/tests/tools/make-load" same.jsonl pay; try same.jsonl
