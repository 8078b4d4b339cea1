# Between two nightly plans a process admits a context, carries out what its live plan says, and is killed before it has
# saved the plan: what it put is found, admitting again changes nothing, and the next load has nothing to place.
. "$TOP/tests/cli/load/python.inc"
. "$TOP/tests/cli/load/live.inc"
# what a server would have computed: every variant that the operations may ask for
for config in none knorm:drop=0.5; do
	for context in 'a1 100' 'b1 200' 'c1 90' 'e1 150'; do echo "$context $config ssd"; done | plan "any-$config"
done
"$python" - <<-END
	import json, os, signal
	import evp

	made = {}
	for config in "none", "knorm:drop=0.5":
	    for row in map(json.loads, open(f"any-{config}.jsonl")):
	        if row.get("payload"):
	            made[row["id"], config] = open(f"pay/{row['payload']}", "rb").read()
	tokens = [1000 * ord("e") + i for i in range(150)]

	def carry_out(store, op):
	    if op.kind == "evict":
	        store.remove(op.id)
	    elif op.kind == "move":
	        store.move(op.id, op.to_tier)
	    else:
	        store.put(op.id, op.to_tier, made[op.id, op.to_config])

	def admit():
	    store, plan = evp.open("m.jsonl"), evp.open_plan("m.jsonl")
	    for op in plan.admit("e1", tokens, 9, 5, [("none", 38400, 1), ("knorm:drop=0.5", 19200, 0.9)]):
	        print(op.kind, op.id, op.from_tier, op.to_tier, op.to_config, flush=True)
	        carry_out(store, op)
	    return store, plan

	def say(store):
	    for letter in "abce":
	        found = store.find([1000 * ord(letter) + i for i in range(250)])
	        print(letter, found and (found.n_tokens, found.tier, found.config), len(store.fetch(found)) if found else 0)

	if os.fork() == 0:
	    admit()
	    os.kill(os.getpid(), signal.SIGKILL)
	os.wait()
	with evp.open("m.jsonl") as store:
	    say(store)
	store, plan = admit()
	say(store)
	store.remove("e1")
	plan.lost("e1")
	print("lost", plan.status().free_bytes["dram"])
	for op in plan.update("e1", 9):
	    print(op.kind, op.id, op.from_tier, op.to_tier, op.to_config)
	    carry_out(store, op)
	say(store)
	for k in range(3): # of a context that neither the manifest nor this program describes
	    for op in plan.used("f1", [1000 * ord("f") + i for i in range(40)]):
	        print("used:", op.kind, op.id, op.from_tier, op.to_tier, op.to_config, op.to_bytes)
	print(plan.status().n_contexts, "contexts")
	plan.remove("f1")
	plan.save("next.jsonl")
END
evp-load next.jsonl --json --dry-run 2>said | tr ',' '\n' | grep '"insert"\|"move"\|"recompress"\|"evict"\|"keep"'
evp-load -q next.jsonl && evp-show --check dram ssd
