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
	rows $tier | sed 's/.*"context":"\([^"]*\)".*"config":"\([^"]*\)".*/\1 \2/' | while read -r id config; do
		cmp "$(file $tier "$id" "$config")" "pay/$id-$(echo "$config" | tr ':=' __)"-* || exit
	done || exit
	find $tier -type f | grep -v -e '/evp-payloads/../[0-9a-f]*$' -e '/evp-[islt]'
done
grep -c '"operation":"insert"' m.jsonl.receipt
