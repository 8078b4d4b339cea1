# A payload is that of its tokens: one that the tiers or the payload folder have under another id serves a context, and two
# contexts with the same tokens need one payload.
. "$TOP/tests/cli/load/plans.inc"
echo 'a1 100 none dram
b1 90 none ssd' | plan one 60000 60000
evp-load -q one.jsonl --payloads pay || exit
as() { sed "s/\"id\":\"$1\"/\"id\":\"$2\"/; s/\"payload\":\"$1-/\"payload\":\"$2-/" "$3"; }
try() {
	timeout 20 evp-load "$@" >said 2>&1
	echo "status $?"
	grep 'warning\|error\|keep\|insert\|move\|nothing' said
	placed
}
mkdir none
as a1 z1 one.jsonl >two.jsonl
echo 'another id, nothing packed:'; try two.jsonl --payloads none
evp-show --check dram ssd
echo 'again:'; try two.jsonl --payloads none
sed 's/"tier":"dram"/"tier":"ssd"/' two.jsonl >three.jsonl
echo 'another id, on another tier:'; try three.jsonl --payloads none
rm -r dram ssd
mkfifo pay/pipe
echo 'another id, packed under the first:'; try two.jsonl --payloads pay --new
rm -r dram ssd
evp-load -q one.jsonl --payloads pay --new || exit
sed '/"id":"a1"/{p;s/"id":"a1"/"id":"y1"/;s/"payload":"a1-/"payload":"y1-/;s/"tier":"dram"/"tier":"ssd"/}; s/"rows":2/"rows":3/' one.jsonl >four.jsonl
echo 'two contexts, one payload:'; try four.jsonl --payloads none
evp-show --check dram ssd
