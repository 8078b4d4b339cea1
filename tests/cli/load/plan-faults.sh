# A live plan and the store it drives, while puts fail because another process holds a tier, payloads vanish and a tier in memory
# is lost: told as evicpress_plan.h says, the plan is always what the store has, and a load of the saved plan finds it in place.
. "$TOP/tests/cli/load/python.inc"
. "$TOP/tests/cli/load/live.inc"
letters="e f g h i j k l m n o p q r s t"
for config in none knorm:drop=0.5; do
	for letter in $letters; do echo "${letter}1 $((60 + $(printf %d "'$letter") % 5 * 20)) $config ssd"; done | plan "any-$config"
done
"$python" - "$letters" <<-'END' || exit
	import fcntl, glob, json, os, random, shutil, subprocess, sys
	import evp

	random.seed(7)
	made, length = {}, {}
	for config in "none", "knorm:drop=0.5":
	    for row in map(json.loads, open(f"any-{config}.jsonl")):
	        if row.get("payload"):
	            made[row["id"], config] = open(f"pay/{row['payload']}", "rb").read()
	            length[row["id"]] = row["n_tokens"]
	store, plan = evp.open("m.jsonl", wait_s=0), evp.open_plan("m.jsonl")
	there, done = set(), {"busy": 0, "lost": 0, "tier lost": 0, "events": 0}

	def tokens(id):
	    return [1000 * ord(id[0]) + i for i in range(length[id])]

	def change(what, *arguments):
	    try:
	        what(*arguments)
	        return True
	    except evp.Error as e:
	        assert e.code in (-7, -10), e  # unknown, busy
	        done["busy"] += e.code == -10
	        return e.code == -7 and what == store.remove

	def carry_out(ops):
	    held = random.random() < 0.2 and open(random.choice(glob.glob("*/evp-lock")))
	    if held:
	        fcntl.flock(held, fcntl.LOCK_EX)
	    lost = set()
	    for op in ops:
	        if op.id in lost:
	            continue
	        if op.kind == "evict":
	            ok = change(store.remove, op.id)
	        elif op.kind == "move":
	            ok = change(store.move, op.id, op.to_tier)
	        else:
	            ok = (op.id, op.to_config) in made and change(store.put, op.id, op.to_tier, made[op.id, op.to_config])
	        if not ok:
	            if held:
	                held.close()
	                held = None
	            change(store.remove, op.id)
	            if op.kind != "evict":
	                plan.lost(op.id)
	                lost.add(op.id)
	    if held:
	        held.close()

	def shown():
	    said = [json.loads(subprocess.run(["evp-show", "--json", t], capture_output=True, text=True).stdout) for t in ("dram", "ssd")]
	    return {(t, p["context"], p["config"]) for t, s in zip(("dram", "ssd"), said) for p in s["payloads"]}

	def planned():
	    plan.save("saved.jsonl")
	    rows = [r for r in map(json.loads, open("saved.jsonl")) if r.get("payload")]
	    return {(r["tier"], r["id"], r["config"]) for r in rows}

	for event in range(400):
	    id = random.choice(list(length))
	    what = random.random()
	    done["events"] += 1
	    if id not in there:
	        carry_out(plan.admit(id, tokens(id), random.uniform(0, 9), 5, [("none", 256 * length[id], 1), ("knorm:drop=0.5", 128 * length[id], 0.9)]))
	        there.add(id)
	    elif what < 0.4:
	        carry_out(plan.update(id, random.uniform(0, 9)))
	    elif what < 0.6:
	        carry_out(plan.remove(id))
	        there.remove(id)
	    elif what < 0.95:
	        found = store.find(tokens(id))
	        if found and found.n_tokens == length[id]:
	            for file in glob.glob("*/evp-payloads/*/*"):
	                if os.stat(file).st_size == found.size and open(file, "rb").read() == bytes(store.fetch(found)):
	                    os.remove(file)
	                    break
	            try:
	                store.fetch(found)
	                assert False, "a removed payload was fetched"
	            except evp.Error as e:
	                assert e.code == -4, e
	            store.remove(id)
	            plan.lost(id)
	            done["lost"] += 1
	    elif event % 3 == 0:
	        shutil.rmtree("dram")
	        store.refresh()
	        plan.tier_lost("dram")
	        done["tier lost"] += 1
	    if event % 40 == 39:
	        assert os.path.isdir("dram") or not [p for p in planned() if p[0] == "dram"]
	        have = shown() if os.path.isdir("dram") else {p for p in planned() if p[0] == "dram"} | {
	            ("ssd", p["context"], p["config"]) for p in json.loads(subprocess.run(["evp-show", "--json", "ssd"], capture_output=True, text=True).stdout)["payloads"]}
	        assert planned() == have, planned() ^ have
	print(all(done.values()) or done)
	plan.save("saved.jsonl")
END
evp-load --json saved.jsonl 2>said | tr ',' '\n' | grep '"insert"\|"move"\|"recompress"\|"evict"\|"skipped"'
evp-show --check dram ssd
