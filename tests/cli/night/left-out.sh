# A log of which half is not understood: the night says so, goes on with the rest, and ends with status 1; as a script, too.
. "$TOP/tests/cli/night/night.inc"
use_tiers "$dram,$ssd"
{ make_log 1; make_log 1 | sed 's/"messages"/"tools":[{}],&/'; } >world/requests.log.1
evp-nightly --config nightly.json >night.log 2>&1
echo "status $?"
grep 'left out' night.log
ls world/manifest.jsonl
by_script
rm -rf world/manifest.jsonl world/payloads world/mine
run_night
echo "status $?"
grep 'left out' night.log
ls world/manifest.jsonl
