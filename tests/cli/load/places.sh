# A first load, twice: the second has nothing to do and leaves the receipt as it is.
. "$TOP/tests/cli/load/plans.inc"
first_plan m
evp-load -q m.jsonl --payloads pay || exit
placed
cp m.jsonl.receipt was
evp-load m.jsonl --payloads pay 2>said || exit
cat said
cmp was m.jsonl.receipt
# every placed file is its payload, and there is no other file
for tier in dram ssd; do
	for file in $(cd $tier && ls | grep -v -e evp-index -e evp-lock); do
		cmp "$tier/$file" "pay/$(echo "$file" | cut -c 22-)" || exit
	done
done
grep -c '"operation":"insert"' m.jsonl.receipt
