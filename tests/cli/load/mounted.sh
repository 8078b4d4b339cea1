# A disk that is not mounted: the folder of a tier where the plan keeps payloads is empty or not there. It is left out, and
# nothing is written in its place; --new allows it. A tier of kind dram may always be empty.
. "$TOP/tests/cli/load/plans.inc"
mkdir disk
spec() {
	printf 'tier dram dram %s 60000\ntier ssd file %s 60000\n' "$PWD/dram" "$PWD/disk/ssd"
	printf 'context a1 100 none dram\ncontext b1 100 none ssd\n'
}
spec | "$BUILD/tests/tools/make-load" m.jsonl pay
evp-load -q m.jsonl --payloads pay || exit
sed -i 's/"operation":"insert"/"operation":"keep"/' m.jsonl
evp-load -q m.jsonl --payloads pay || exit
mv disk away; mkdir disk; rm -r dram
try() {
	evp-load -q m.jsonl --payloads pay "$@" 2>said
	echo "status $?"
	sed "s|$PWD/||g" said
	ls disk; payloads dram
}
try
mkdir disk/ssd; try
rm -r disk; mv away disk; try
rm -r disk/ssd; try --new
