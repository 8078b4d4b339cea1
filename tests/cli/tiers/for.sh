# What plans may place for each engine is what docs/serving.md says.
tier=name=a,uri=redis://b,read=1G,write=1G,latency=1ms
cat >table.py <<'END'
import json, re, subprocess, sys
rows = re.search(r"\| `--for` .*\n.*\n((?:\|.*\n)+)", open(sys.argv[1]).read())[1]
table = {}
for row in rows.splitlines():
    engines, configs = row.strip("|").split("|")
    for engine in re.findall("`([^`]*)`", engines):
        table[engine] = re.findall("`([^`]*)`", configs)
help = subprocess.run(["evp-tiers", "--help"], capture_output=True, text=True).stdout
known = re.search(r"--for=(\S+)", help)[1].split("|")
assert sorted(known) == sorted(table), (known, table)
for engine, configs in table.items():
    out = subprocess.run(["evp-tiers", "-q", "--for", engine, "--tier", sys.argv[2]], capture_output=True, text=True, check=True)
    print(engine, *json.loads(out.stdout)["tiers"][0].get("configs", ["all"]))
    assert json.loads(out.stdout)["tiers"][0].get("configs", []) == configs, engine
END
python3 table.py "$TOP/docs/serving.md" $tier
evp-tiers -q --for llama --tier $tier,configs=kivi:bits=4/snapkv:drop=0.5+kivi | grep -o '"configs":[^]]*]'
for configs in snapkv kivi/pyramidkv:drop=0.5 adakv+snapkv; do
	evp-tiers --for vllm --tier $tier,configs=$configs
	echo $?
done
evp-tiers --for vlm --tier $tier
echo $?
