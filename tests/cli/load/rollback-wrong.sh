# Only the load in force can be undone: the rollback of an older one is refused by name, and changes nothing.
. "$TOP/tests/cli/load/plans.inc"
first_plan sunday
evp-load -q sunday.jsonl --payloads pay || exit
second_plan monday
evp-load -q monday.jsonl --payloads pay || exit
echo 'a1 100 none dram' | plan tuesday 60000 100000
evp-load -q tuesday.jsonl --payloads pay || exit
state >was
for name in monday sunday; do
	evp-load -q --rollback $name.jsonl --payloads pay
	echo "status $?"
done
state | cmp was -
cp tuesday.jsonl sunday.jsonl # whatever the file is called
evp-load -q --rollback sunday.jsonl --payloads pay && placed
