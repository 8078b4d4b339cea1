# Tools that need --output say so with status 2, before they open anything; the others write to standard output.
try() {
	"$@" 2>&1
	echo "status $?"
}
try evp-profile no-such.jsonl no-such-questions.jsonl --configs none
try evp-score no-such.h5
try evp-drift no-such.h5 no-such.jsonl --questions no-such.jsonl --contexts no-such.jsonl
try evp-plan "$DATA/table.h5" --tiers "$DATA/tiers.json" --alpha 1,2
ls
