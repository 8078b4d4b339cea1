# evp-nightly: what it prints and writes, what it refuses, and that a night that fails leaves the plan in force.
. "$TOP/tests/cli/night/night.inc"
use_tiers "$dram,$ssd"
sed -i 's/"rate":0,"pack_weight":0,//; s/"evp-plan":\[[^]]*\],//' nightly.json
says() { sed -E "s@$PWD@.@g; s/[0-9.]+ (ns|us|ms|s)/T/; s/--summary [^ ]*/--summary S/; s/process [0-9]+/process N/; s/(ttft_s|quality) [0-9.]+/\1 X/g" night.log | grep -v -e 'warning' -e '^evp-profile: '; }
make_log 1 >world/requests.log.1
echo "-- a dry run changes nothing"
evp-nightly --config nightly.json --dry-run 2>said | sed "s@$PWD@.@g"
ls world
echo "-- the first night"
evp-nightly --config nightly.json --summary s.json >night.log 2>&1
echo "status $?"
says
python3 - <<'END'
import json, re
night = json.load(open("world/nights/000001/night.json"))
print([s["step"] for s in night["steps"]], night["status"], night["last_success"] >= night["started"], night["ended"] >= night["started"])
print(json.load(open("s.json"))["result"])
prom = open("world/nightly.prom").read()
print(sorted(set(re.findall(r"^(evp_\w+)", prom, re.M))))
print(re.findall(r'.*step="load",figure="insert".*', prom))
assert prom.count("# TYPE") == prom.count("# HELP") == len(set(re.findall(r"# TYPE (\w+)", prom)))
try:
    from prometheus_client.parser import text_string_to_metric_families
    assert len(list(text_string_to_metric_families(prom))) == prom.count("# TYPE")
except ImportError:
    pass
END
try() { # WHAT COMMAND...: the last line of a night, its status, and whether the plan in force is as it was
	echo "-- $1"
	shift
	before=$(cat world/manifest.jsonl | sha256sum)
	"$@" >night.log 2>&1
	echo "status $?"
	says | grep -v '\$ \|: T' | tail -n 2
	[ "$before" = "$(cat world/manifest.jsonl | sha256sum)" ] || echo "another plan is in force"
}
with() { sed "$1" nightly.json >other.json && evp-nightly --config other.json; }
try "no configuration" evp-nightly
try "no such file" evp-nightly --config nowhere.json
try "an unknown field" with 's/"alpha"/"alhpa"/'
try "an unknown tool" with 's/"evp-score"/"evp-scores"/'
try "not a list" with 's/\["--min-tokens","64","--half-life","72"\]/"--min-tokens 64"/'
try "no logs" with 's/"logs":\[[^]]*\],//'
try "out of bounds" with 's/"alpha":10/"alpha":-1/'
try "another kind of file" evp-nightly --config world/tiers.json
try "another model" with 's/synthetic:tiny/synthetic:smollm2-135m/'
try "no file is named so" with 's/requests.log\*/requests.lag*/'
try "an option that a tool does not know" with 's/"--min-tokens"/"--min-token"/'
try "no state folder can be made" with "s@\"state\":\"world\"@\"state\":\"nightly.json/world\"@"
mv world/requests.log.1 log && : >world/requests.log.1
try "an empty log" evp-nightly --config nightly.json
mv log world/requests.log.1
try "no tiers" with 's/"tiers":"tiers.json"/"tiers":"nowhere.json"/'
exec 9<>world/lock && flock 9 && echo $$ >&9
try "another night is at work" evp-nightly --config nightly.json
exec 9<&-
last=$(ls world/nights | tail -n 1)
echo '{"evp":"night","started":' >"world/nights/$last/night.json"
try "a damaged journal" evp-nightly --config nightly.json
grep -h 'is damaged' night.log | sed 's/[0-9]\{6\}/N/'
printf '{"evp":"night","started":%s,"steps":[{"step":7},null,{"step":"import","status":0,"seconds":1},{"step":"nonsense","status":0},{"step":"load","status":3,"failed":true}]}' "$(date +%s)" \
	>"world/nights/$(ls world/nights | tail -n 1)/night.json"
try "a strange one, of a night whose load failed" evp-nightly --config nightly.json
grep -c 'evp-nightly: load: ' night.log
grep -h 'goes on' night.log | sed 's/night [0-9]*/night N/'
echo "-- only the last nights are kept"
sed 's/"alpha"/"keep":2,"alpha"/' nightly.json >other.json
evp-nightly -q --config other.json 2>said
ls world/nights | wc -l
echo "-- closed descriptors"
evp-nightly --config nightly.json <&- >&- 2>&-
echo "status $?"
