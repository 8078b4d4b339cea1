# A damaged file in the payload folder counts as absent, and is named: what lies whole on a tier stays or moves. A rollback
# that cannot change anything says so, and the load in force stays. The receipt tells what was left out from what is recomputed.
. "$TOP/tests/cli/load/plans.inc"
echo 'a1 100 none dram
b1 100 none ssd
e1 10 none recompute' | plan one 25600 51200
evp-load -q one.jsonl --payloads pay || exit
cp -r pay whole
try() {
	evp-load "$@" >said 2>&1
	echo "status $?"
	sed "s|$PWD/||g; s/-[0-9a-f]*\.safetensors/.safetensors/; s/: tensor.*: it/: WHY: it/; s/: safetensors.*: it/: WHY: it/
		s/ in [0-9.]* m*s$//; s/, [0-9.]* [KM]*i*B written//" said | grep -v 'a server finds\|next:\|payloads checked\| steps,'
	placed
}
cut() { rm -r pay && cp -r whole pay && truncate -s -100 pay/a1*; }
damage() { rm -r pay && cp -r whole pay && printf 'damage' | dd of="$(echo pay/a1-*)" bs=1 seek=9000 conv=notrunc 2>dd.log; }
echo 'a1 100 none ssd
b1 100 none ssd
e1 10 none recompute' | plan two 25600 51200
echo 'stays, cut:'; cut; try one.jsonl --payloads pay
echo 'stays, damaged, --verify:'; damage; try one.jsonl --payloads pay --verify
echo 'moves, cut:'; cut; try two.jsonl --payloads pay
evp-load -q one.jsonl || exit
echo 'moves, damaged:'; damage; try two.jsonl --payloads pay
evp-load -q one.jsonl || exit
echo 'nowhere whole:'; cut
echo 'a1 100 none ssd' | plan three 25600 51200
cut; evp-load -q --retire "$(sed -n '1s/.*"model_digest":"\([^"]*\)".*/\1/p' one.jsonl)" one.jsonl
try one.jsonl --payloads pay
sed -n 's/^{"id":"\([^"]*\)".*\("tier".*\)}/\1 \2/p' one.jsonl.receipt
# back to a placement of which nothing is there
evp-load -q two.jsonl --payloads whole || exit
evp-load -q one.jsonl --payloads whole || exit
echo 'c1 100 none dram' | plan four 25600 51200
evp-load -q four.jsonl --payloads pay || exit
rm -r pay && cp -r whole pay && truncate -s -100 pay/*
echo 'back:'; try four.jsonl --payloads pay --rollback
ls four.jsonl.receipt
echo 'again, whole:'; try four.jsonl --payloads whole --rollback
