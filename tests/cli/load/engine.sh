# What a load says last: vLLM's option for this manifest, which the adapter takes, and contexts that no engine can hold.
. "$TOP/tests/cli/load/plans.inc"
. "$TOP/tests/cli/load/python.inc"
load() {
	name=$1
	shift
	evp-load "$name.jsonl" --payloads pay "$@" 2>&1 | grep -e warning -e 'vllm serve' >said
	sed "s|$PWD|FOLDER|" said
	"$python" - "$(sed -n "s/.*--kv-transfer-config '\(.*\)'.*/\1/p" said)" <<-END
		import json, sys
		from evp import engine
		given = json.loads(sys.argv[1])
		got = engine.settings(given["kv_connector_extra_config"], dropped=False)
		print(given["kv_connector"], len(engine.Store(got.manifest, got.name_space).list()), "placed", got.dropped)
	END
}
plan kept 60000 100000 <<-END
	a1 100 none dram
	b1 200 kivi:bits=2 ssd
	c1 10 none recompute
END
load kept --namespace tenant
first_plan dropped
load dropped
plan other 60000 100000 <<-END
	a1 100 none dram
	b1 100 pyramidkv:drop=0.5 ssd
	c1 100 kvzip:drop=0.5 ssd
END
load other --take-over
