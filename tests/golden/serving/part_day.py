"""part_day.py MODEL FOLDER [MODE] - a small day: contexts come and go, and vLLM is asked about them, one request after the other.

plain: vLLM alone. night: with what last night's plan placed. day: it tells the live plan, and stores what that wants. Without
MODE: the three, each in its own process, and tokens found, times to the first token, bytes written; and evp-replay's means
of the same requests, which must have the same order. What is not lossy must answer as vLLM alone does. EVP_DAY_REQUESTS: how many requests (default 60); EVP_DAY_KNOWN: contexts that the night knew
(default 8 of 12, the shortest first); EVP_DAY_CONTEXTS: that are asked about in all (default three times as many)."""
import json, os, random, shutil, subprocess, sys, time

sys.path[0] = os.path.dirname(os.path.abspath(__file__))
MODES, REQUESTS, NEW = ("plain", "night", "day"), int(os.environ.get("EVP_DAY_REQUESTS", 60)), 8
KNOWN, FITS = int(os.environ.get("EVP_DAY_KNOWN", 8)), 2.5  # contexts that the night knew; uncompressed ones that the tier holds
CONTEXTS = int(os.environ.get("EVP_DAY_CONTEXTS", 3 * KNOWN))
CONFIGS = {"none": 1, "kivi:bits=4": 0.97, "kivi:bits=2": 0.9}


def requests(prompts):
    """(context, prompt) of a day: Zipf's law, over contexts of which each comes and goes; one in four is a next turn."""
    rng, ids, questions = random.Random(7), prompts["contexts"], {}
    for q in prompts["questions"]:
        questions.setdefault(q["context"], []).append(q["ids"])
    names = sorted(ids, key=lambda name: len(ids[name]))[:KNOWN]  # and these texts from other places on
    texts = [ids[name][cut:] + ids[name][:cut] for cut in range(0, 500, 100) for name in names][:CONTEXTS]
    out, last = [], None
    for i in range(REQUESTS):
        if last and rng.random() < 0.25:
            last = last[0], last[1] + rng.choice(questions[names[last[0] % len(names)]])
        else:
            first = int(i / REQUESTS * (len(texts) - KNOWN))  # the window of contexts in use moves on
            rank = min(KNOWN - 1, int(rng.paretovariate(1)) - 1)
            context = first + (rank * 5 + i // 20) % KNOWN
            last = context, texts[context] + rng.choice(questions[names[context % len(names)]])
        out.append(last)
    return names, texts, out


def night(folder, prompts, seconds_per_token):
    """Last night's plan of the first KNOWN contexts, as the live plan places them, carried out."""
    import evp

    names, _, _ = requests(prompts)
    given = {row["id"]: row for row in map(json.loads, open(os.path.join(folder, "none.jsonl"))) if "id" in row}
    bytes_of = {config: {row["id"]: row["bytes"] for row in map(json.loads, open(os.path.join(folder, f"{file_name(config)}.jsonl")))
                         if "id" in row} for config in CONFIGS}
    head = json.loads(open(os.path.join(folder, "none.jsonl")).readline())
    tier = head["tiers"][0] | {"name": "memory", "uri": os.path.abspath(os.path.join(folder, "memory")),
                               "capacity_bytes": int(FITS * max(bytes_of["none"][name] for name in names))}
    rows = []
    for name in names:
        row = {key: given[name][key] for key in ("id", "token_digest", "n_tokens")}
        rows.append(row | {"config": "none", "tier": "recompute", "bytes": 0, "quality": 1, "utility": 0, "frequency": 1,
                           "operation": "none", "prefill_s": seconds_per_token * row["n_tokens"], "question_s": 0.2,
                           "forms": {"config": [0, 1, 2], "bytes": [bytes_of[config][name] for config in CONFIGS],
                                     "quality": list(CONFIGS.values()), "decompress_s": [0, 0.01, 0.01]}})
    head |= {"version": 2, "tiers": [tier], "objective": 0, "configs": list(CONFIGS)}
    before, path = os.path.join(folder, "before.jsonl"), os.path.join(folder, "night.jsonl")
    with open(before, "w") as f:
        for row in [head] + rows + [{"end": True, "rows": len(rows)}]:
            f.write(json.dumps(row) + "\n")
    with evp.open_plan(before) as plan:
        for i, name in enumerate(names):
            plan.update(name, 8 / (1 + i))
        plan.save(path)
    payloads = os.path.join(folder, "night-payloads")
    os.makedirs(payloads, exist_ok=True)
    for row in map(json.loads, open(path)):
        if row.get("payload"):
            shutil.copy(os.path.join(folder, "payloads", f"{row['id']}-{file_name(row['config'])}.safetensors"),
                        os.path.join(payloads, row["payload"]))
    shutil.rmtree(tier["uri"], ignore_errors=True)
    subprocess.run(["evp-load", "-q", "--payloads", payloads, path], check=True)
    return path, sum(row.get("bytes", 0) for row in map(json.loads, open(path)))


def file_name(config):
    return config.translate(str.maketrans(":=+.", "____"))


def run(model, folder, mode):
    from part_vllm import connector
    from vllm import LLM, SamplingParams
    from vllm.config import KVTransferConfig
    import evp

    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    prompts, written, found, more = json.load(open(os.path.join(folder, "prompts.json"))), [0], ["computed"], {}
    if mode != "plain":
        plain = json.load(open(os.path.join(folder, "day-plain.json")))
        manifest, written[0] = night(folder, prompts, plain["seconds_per_token"])
        place = os.path.join(folder, "day.jsonl")
        for end in ("", ".lock", ".sock"):
            if os.path.exists(place + end):
                os.remove(place + end)
        transfer = connector(manifest, **({"day": place} if mode == "day" else {}))
        more["kv_transfer_config"] = KVTransferConfig(**transfer | {"kv_role": "kv_both"})
        put, find = evp.Store.put, evp.Store.find

        def counted(self, id, tier, payload, **more):
            put(self, id, tier, payload, **more)
            written[0] += len(payload)

        def noted(self, tokens):
            one = find(self, tokens)
            found[0] = one.config if one else "computed"
            return one

        evp.Store.put, evp.Store.find = counted, noted
    llm = LLM(model, dtype="float32", enforce_eager=True, max_model_len=2048, max_num_seqs=4, enable_prefix_caching=False, **more)
    scheduler = llm.llm_engine.engine_core.engine_core.scheduler.connector.scheduler if mode == "day" else None
    out = []
    for i, (context, prompt) in enumerate([(0, [1] * 40)] + requests(prompts)[2]):
        found[0], start, first_s, done = "computed", time.monotonic(), None, None
        llm.llm_engine.add_request(str(i), {"prompt_token_ids": prompt[:2000]},
                                   SamplingParams(temperature=0, max_tokens=NEW, ignore_eos=True))
        while not done:
            for one in llm.llm_engine.step():
                first_s = first_s or time.monotonic() - start
                done = one if one.finished else None
        out.append({"context": context, "n": len(prompt), "found": done.num_cached_tokens, "config": found[0], "first_s": first_s,
                    "tokens": list(done.outputs[0].token_ids)})
        while scheduler and scheduler.saving:  # nobody asks for a while
            llm.llm_engine.step()
            time.sleep(0.01)
        print(f"day: {mode} {i}: {out[-1]['found']} of {out[-1]['n']} tokens, {first_s:.2f} s", file=sys.stderr, flush=True)
    del out[0]
    with open(os.path.join(folder, f"day-{mode}.json"), "w") as f:
        json.dump({"requests": out, "written": written[0],
                   "seconds_per_token": sum(r["first_s"] for r in out) / sum(r["n"] for r in out)}, f)


def foretold(model, folder, prompts, seconds_per_token):
    """evp-replay's mean TTFTs of the three, on a processor that computes as fast as this one did, but for a factor; before
    them as many requests for what the night knew, from which it plans."""
    _, texts, today = requests(prompts)
    yesterday = [(i, texts[i]) for i in random.Random(8).choices(range(KNOWN), [1 / (1 + i) for i in range(KNOWN)], k=len(today))]
    number, trace = {}, os.path.join(folder, "day-trace.jsonl")
    with open(trace, "w") as f:
        for i, (_, ids) in enumerate(yesterday + today):
            hashes = [number.setdefault(tuple(ids[:at + 16]), len(number)) for at in range(0, len(ids), 16)]
            f.write(json.dumps({"timestamp": 60000 * i, "input_length": len(ids), "output_length": NEW, "hash_ids": hashes}) + "\n")
    with open(os.path.join(folder, "night.jsonl")) as f:
        tiers = {"evp": "tiers", "version": 1, "tiers": json.loads(f.readline())["tiers"]}
    with open(os.path.join(folder, "day-tiers.json"), "w") as f:
        json.dump(tiers, f)
    about = json.loads(subprocess.run(["evp-show", "--json", model], check=True, stdout=subprocess.PIPE, text=True).stdout)
    rows = subprocess.run(
        ["evp-replay", "-q", "--trace", trace, "--tiers", f.name, "--model", model, "--gpus", "1", "--engine-cache", "0", "--rate", "0",
         "--gpu", f"tflops={about['weights_bytes'] / 2 / seconds_per_token / 1e12},memory=8G,bandwidth=50G", "--policy", "prefill,night,live",
         "--assume", ",".join(f"{factor}:{CONFIGS[name]}" for name, factor in (("kivi:bits=4", 3.1), ("kivi:bits=2", 5.1)))],
        check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return {MODES[i]: float(row.split("\t")[4]) for i, row in enumerate(rows[1:])}


def main(model, folder):
    failed, means = 0, {}
    for mode in MODES:
        subprocess.run([sys.executable, __file__, model, folder, mode], check=True)
        with open(os.path.join(folder, f"day-{mode}.json")) as f:
            day = json.load(f)
        asked = day["requests"]
        plain = asked if mode == "plain" else plain
        per_token = day["seconds_per_token"] if mode == "plain" else per_token
        means[mode] = sum(r["first_s"] for r in asked) / len(asked)
        same = {}  # config -> equal answers, answers
        for a, b in zip(asked, plain):
            one = same.setdefault(a["config"] if a["found"] else "computed", [0, 0])
            one[0] += a["tokens"] == b["tokens"]
            one[1] += 1
        print(f"day: {mode}: {sum(r['found'] > 0 for r in asked)} of {len(asked)} requests found something, "
              f"{sum(r['found'] for r in asked) / sum(r['n'] for r in asked):.0%} of the tokens; first token after "
              f"{means[mode]:.2f} s; {day['written'] / 1e6:.0f} MB written; answers as vLLM's own: "
              + ", ".join(f"{config} {n} of {of}" for config, (n, of) in sorted(same.items())), flush=True)
        failed += sum(of - n for config, (n, of) in same.items() if config in ("computed", "none"))
    with open(os.path.join(folder, "prompts.json")) as f:
        replayed = foretold(model, folder, json.load(f), per_token)
    print("day: of plain's mean, measured and by evp-replay: " + ", ".join(
        f"{mode} {means[mode] / means['plain']:.2f} and {replayed[mode] / replayed['plain']:.2f}" for mode in MODES[1:]))
    sys.exit(failed > 0 or sorted(MODES, key=means.get) != sorted(MODES, key=replayed.get))


if __name__ == "__main__":
    main(*sys.argv[1:3]) if len(sys.argv) == 3 else run(*sys.argv[1:4])
