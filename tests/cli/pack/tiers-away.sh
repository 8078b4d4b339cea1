# A tier that cannot be read is reported: its contexts are left out, with status 1; the others are packed, also those that the
# plan moves away from it.
model=$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf
[ -f "$model" ] || skip "no default model"
tier() { printf '{"name":"%s","kind":"%s","uri":"%s","capacity_bytes":null,"read_bytes_per_s":1e9,"write_bytes_per_s":1e9,"latency_s":0%s}' "$@"; }
# plan NAME TIER LAST-TIER: NAME.jsonl puts fox on dram and ships on TIER; NAME.json has its tiers
plan() {
	tiers="$(tier dram dram "$PWD/dram"),$3"
	echo "{\"evp\":\"tiers\",\"version\":1,\"tiers\":[$tiers]}" >"$1.json"
	sed "s|\"tiers\": \[[^]]*\]|\"tiers\":[$tiers]|; /ships/s/\"tier\": \"dram\"/\"tier\": \"$2\"/" "$DATA/pack/manifest.jsonl" >"$1.jsonl"
}
pack() {
	name=$1
	shift
	evp-pack "$name.jsonl" --tiers "$name.json" "$DATA/pack/contexts.jsonl" --model "$model" -o pay -q "$@" 2>said
	echo "status $?"
	sed "s|$PWD/||g; s/cannot reach redis.*;/...;/; s/is damaged (.*;/is damaged (...);/; s/user [0-9]*/user N/g" said
}
ssd=$(tier ssd file "$PWD/ssd")
plan m ssd "$ssd" && plan moved dram "$ssd" && plan gone ssd "$(tier ssd file "$PWD/no/ssd")"
plan far far "$(tier far redis redis://127.0.0.1:1 ",\"state\":\"$PWD/far\"")" && mkdir far
evp-pack m.jsonl "$DATA/pack/contexts.jsonl" --model "$model" -o all -q && evp-load m.jsonl -q --payloads all || exit
pack gone --list
pack far --list
mv ssd/evp-state state && pack m --list # the next load finds its payloads again
mv ssd away && pack m --list
sed '/ships/s/"insert"/"keep"/' m.jsonl >kept.jsonl && cp m.json kept.json && pack kept --list # is its disk mounted?
mv away ssd && mv state ssd/evp-state
printf garbage >ssd/evp-state
pack m --list
pack m --summary s.json
grep -o '"result".*' s.json && ls pay
pack moved && ls pay
pack m --list # ships is packed already
# What a load found damaged or missing leaves the state: it is made again, though its file is there.
python3 -c 'import sqlite3; sqlite3.connect("dram/evp-state", isolation_level=None).execute("DELETE FROM payload")'
pack m --list
[ "$(id -u)" = 0 ] || skip "only root can give a folder away"
chown nobody ssd && rm pay/* && pack m --list
