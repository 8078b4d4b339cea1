# A placed payload rots, and its context is to move: it alone is left out, and is no longer placed, so that evp-pack makes
# it again. Every other context is loaded, and nothing is evicted whose bytes are not needed.
. "$TOP/tests/cli/load/plans.inc"
first_plan m
evp-load -q m.jsonl --payloads pay || exit
second_plan n
rm pay/*
printf 'x' | dd of="$(file dram a1 none)" bs=1 seek=9000 conv=notrunc 2>dd.log
evp-load m.jsonl 2>&1 | tail -n 1 # without --verify nobody reads it
try() {
	evp-load -q "$@" 2>said
	echo "status $?"
	sed "s|$PWD/||g; s|evp-payloads/[0-9a-f/]*|FILE|; s/-[0-9a-f]*\.safetensors/.safetensors/" said
	placed
}
echo 'dry run:'; try n.jsonl --dry-run
echo 'load:'; try n.jsonl --receipt receipt
sed -n 's/^{"id":"\([^"]*\)".*"tier":"\([^"]*\)","operation":"\([^"]*\)"\(,"left_out"\)*.*}/\1 \2 \3\4/p' receipt
second_plan n # what evp-pack does
echo 'next load:'; try n.jsonl --payloads pay
evp-show --check dram ssd
# a receipt is a record for people: that it cannot be written undoes nothing
first_plan m
echo 'no receipt:'; try m.jsonl --payloads pay --receipt /dev/full
