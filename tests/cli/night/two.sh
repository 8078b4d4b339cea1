# Two state folders with the same tiers: the second night is refused and says why, the first one's plan stays served; with a
# namespace both are.
. "$TOP/tests/cli/night/night.inc"
use_tiers "$(tier dram dram "$PWD/world/dram" 200000 1e9 ',"total_bytes":400000'),$(tier ssd file "$PWD/world/disk/ssd" 250000 1e8 ',"total_bytes":500000')"
sed 's/"state":"world"/"state":"other"/' nightly.json >other.json
mkdir other && cp world/tiers.json other
begin_night
sed 's/section/chapter/g' world/requests.log.1 >other/requests.log
run_night && cp world/manifest.jsonl was
other() {
	evp-nightly --config "$1" >other.log 2>&1
	echo "status $?"
	sed "s|$PWD/||g" other.log | grep 'error' | grep -o 'tier .*'
	evp-load -q world/manifest.jsonl --dry-run --receipt none || echo "of the first: status $?"
}
other other.json
sed 's/"state"/"namespace":"trial",&/' other.json >named.json
other named.json
evp-load other/manifest.jsonl --namespace trial --dry-run 2>&1
evp-load world/manifest.jsonl --dry-run 2>&1
evp-show --check $checked
