# Receipts that contradict their manifest or are cut; and a damaged index.
. "$TOP/tests/cli/load/plans.inc"
first_plan m
evp-load -q m.jsonl --payloads pay || exit
cp m.jsonl.receipt good
try() {
	evp-load -q m.jsonl --payloads pay
	echo "status $?"
	cp good m.jsonl.receipt
}
sed -i 's/\("id":"a1".*\)"tier":"dram"/\1"tier":"ssd"/' m.jsonl.receipt; try
sed -i 's/"config":"none"/"config":"knorm:drop=0.1"/' m.jsonl.receipt; try
sed -i '/"id":"a1"/d; s/"rows":6/"rows":5/' m.jsonl.receipt; try
sed -i '/"end":true/d' m.jsonl.receipt; try
sed -i 's|"file":"evp-[^"]*"|"file":"../../etc/passwd"|' m.jsonl.receipt; try
rm m.jsonl.receipt; try
sed -i '$d' ssd/evp-index; try
