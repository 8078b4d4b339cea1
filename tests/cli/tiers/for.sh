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
# Of which models an engine can hold caches.
folder() {
	mkdir "$1"
	printf '{"model_type":"%s","vocab_size":300,"hidden_size":64,"intermediate_size":128,"num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,"max_position_embeddings":4096,"rms_norm_eps":1e-5%s}' "$2" "$3" >"$1/config.json"
}
folder full mistral ',"sliding_window":null'
folder beyond mistral ',"sliding_window":4096'
folder window mistral ',"sliding_window":64'
folder mixed qwen2 ',"use_sliding_window":true,"sliding_window":64,"max_window_layers":1'
folder pictures qwen2_vl
folder mamba falcon_h1 ',"mamba_d_ssm":64,"mamba_d_state":16,"mamba_n_heads":4,"mamba_d_conv":4,"mamba_n_groups":1'
for model in full beyond window mixed pictures mamba none; do
	for engine in vllm transformers; do
		evp-tiers --for $engine --model $model --tier $tier >out 2>err
		echo "$? $(head -1 err)"
	done
done
