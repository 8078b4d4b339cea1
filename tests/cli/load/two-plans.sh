# Two plans of different folders in one namespace: the second may not empty the first's cache, unless it says so. Everything else
# goes on: a load onto nothing, again, back, of the next plan, and of one whose folder was moved or whose manifest was lost.
. "$TOP/tests/cli/load/plans.inc"
mkdir a b
echo 'a1 100 none dram
a2 50 none ssd' | plan a/m 60000 60000
echo 'a1 100 none dram
a3 51 none ssd' | plan a/n 60000 60000
echo 'b1 100 none dram
a2 50 none ssd' | plan b/m 60000 60000
try() {
	evp-load "$@" --payloads pay >said 2>&1
	echo "status $?"
	sed "s|$PWD/||g" said | grep 'error\|insert\|evict\|nothing'
	placed | tr '\n' ','; echo
}
echo 'first:'; try a/m.jsonl
echo 'again:'; try a/m.jsonl
echo 'the next of this folder:'; try a/n.jsonl
echo 'back:'; try a/n.jsonl --rollback
echo 'of another folder:'; try b/m.jsonl
try b/m.jsonl --dry-run
echo 'in a namespace of its own:'; try b/m.jsonl --namespace b --dry-run
echo 'taken over:'; try b/m.jsonl --take-over
echo 'and the first again:'; try a/m.jsonl
echo 'the folder was moved:'
mv b c && digest=$(sha256sum c/m.jsonl | cut -d ' ' -f 1)
sed "1s/\"tiers\"/\"previous\":\"$digest\",&/" a/m.jsonl >c/next.jsonl
try c/next.jsonl
echo 'another folder adds only:'
mkdir d
echo 'a1 100 none dram
a2 50 none ssd
d1 20 none ssd' | plan d/m 60000 60000
try d/m.jsonl
