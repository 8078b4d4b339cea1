# Manifests without a context, with a single one that is recomputed, and with a single one that is placed; and back.
. "$TOP/tests/cli/load/plans.inc"
try() {
	plan "$1" 25600 25600 && evp-load -q "$1.jsonl" --payloads pay || return
	sed -n 's/^{"id":"\([^"]*\)".*"operation":"\([^"]*\)"}/\1 \2/p; s/.*"end":true,"rows":\([0-9]*\).*/\1 rows/p' "$1.jsonl.receipt"
	evp-load "$1.jsonl" --payloads pay
}
: | try none
echo 'a1 10 none recompute' | try recomputed
echo 'a1 100 none dram' | try placed
evp-load -q --rollback placed.jsonl || exit
ls dram
