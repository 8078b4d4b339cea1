# Manifests that are cut or lie; nothing is made.
. "$TOP/tests/cli/load/plans.inc"
first_plan m
try() {
	evp-load -q bad.jsonl --payloads pay
	echo "status $?"
	[ ! -e dram ] && [ ! -e bad.jsonl.receipt ] || echo "something was made"
}
head -n 3 m.jsonl >bad.jsonl; try
head -c 900 m.jsonl >bad.jsonl; try
: >bad.jsonl; try
sed 's/"tier":"ssd"/"tier":"tape"/' m.jsonl >bad.jsonl; try
sed 's/"id":"a2"/"id":"a1"/' m.jsonl >bad.jsonl; try
sed 's|"payload":"a1|"payload":"../a1|' m.jsonl >bad.jsonl; try
sed 's/"bytes":6400/"bytes":-6400/' m.jsonl >bad.jsonl; try
sed "s|\"uri\":\"$PWD/dram\"|\"uri\":\"\"|" m.jsonl >bad.jsonl; try
evp-load -q absent.jsonl --payloads pay; echo "status $?"
