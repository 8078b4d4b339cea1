"""part_vllm.py MODEL FOLDER [MODE] - vLLM's answers from placed contexts are those of reference.py, token for token.

keep: configs that keep all tokens, each alone and all at once beside requests with nothing placed, from vLLM's prefix
cache on, and from the beginning of a context. drop: those with dropped tokens. share: these beside vLLM's prefix cache, which
other requests share. speculate: with it, and without dropped tokens. backend: one that does not know of them. events: what
routers are told. chunks: prompts in chunks of 16 tokens, without a prefix cache. multi: before another connector. fp8: an fp8 cache. ranks: three of tensor parallelism. serve: the same over HTTP. Without MODE: each in its own process.
speed (by hand): times to the first token, computed and loaded, and an adapter's whole load beside the library's."""
import json, os, shutil, subprocess, sys, time

sys.path[0] = os.path.dirname(os.path.abspath(__file__))
from reference import NEW, chosen, compare, prompts

MODES = ("keep", "drop", "share", "speculate", "backend", "events", "chunks", "multi", "fp8", "ranks", "serve")
os.environ.update(VLLM_CPU_KVCACHE_SPACE="1", VLLM_CPU_OMP_THREADS_BIND="nobind", VLLM_NO_USAGE_STATS="1",
                  VLLM_LOGGING_LEVEL=os.environ.get("VLLM_LOGGING_LEVEL", "ERROR"))
OURS = {"kv_connector": "EvpConnector", "kv_connector_module_path": "evp.vllm", "kv_role": "kv_consumer",
        "kv_load_failure_policy": "recompute"}
failures = 0


def connector(manifest, **more):
    return OURS | {"kv_connector_extra_config": {"manifest": manifest, **more}}


def check(what, fine):
    global failures
    failures += not fine
    if not fine:
        print("FAIL", what, flush=True)


class Engine:
    """A vLLM engine in this process whose manifest can be exchanged, or comes with use()."""

    def __init__(self, model, folder, name, transfer=None, dropped=False, **more):
        from vllm import LLM
        from vllm.config import KVTransferConfig

        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
        self.folder, self.manifest = folder, os.path.join(folder, f"vllm-{os.getpid()}.jsonl")
        if name:
            shutil.copy(os.path.join(folder, f"{name}.jsonl"), self.manifest)
        transfer = transfer(self.manifest) if transfer else connector(self.manifest, dropped=dropped)
        self.llm = LLM(model, **{"dtype": "float32", "enforce_eager": True, "max_model_len": 2048, "max_num_seqs": 8,
                                 "kv_transfer_config": KVTransferConfig(**transfer), **more})

    @property
    def core(self):
        return self.llm.llm_engine.engine_core.engine_core.scheduler

    @property
    def connector(self):
        from evp.vllm import EvpConnector
        one = self.core.connector
        return one if isinstance(one, EvpConnector) else one._connectors[0]

    def use(self, name):
        """Exchanges the manifest, and waits until the adapter has seen it."""
        scheduler = self.connector.scheduler
        seen = scheduler.changes
        shutil.copy(os.path.join(self.folder, f"{name}.jsonl"), self.manifest + ".new")
        os.replace(self.manifest + ".new", self.manifest)
        until = time.monotonic() + 60
        while scheduler.changes == seen and time.monotonic() < until:
            time.sleep(0.05)
        self.forget()

    def forget(self):
        self.llm.reset_prefix_cache()

    def ask(self, ids, n=NEW, **more):
        """[(token ids, tokens that were not computed)] of prompts that come at the same time."""
        from vllm import SamplingParams

        asked = [{"prompt_token_ids": one, **more} for one in ids]
        out = self.llm.generate(asked, SamplingParams(temperature=0, max_tokens=n, ignore_eos=True), use_tqdm=False)
        return [(list(o.outputs[0].token_ids), o.num_cached_tokens) for o in out]

    def blocks_in_use(self):
        pool = self.core.kv_cache_manager.block_pool
        return pool.num_gpu_blocks - 1 - pool.get_num_free_blocks()

    def close(self):
        os.remove(self.manifest)


def compare_all(config, got, prompt, given, answers):
    """got: {question: (ids, cached)}"""
    whole = excused = 0
    contexts = {q["id"]: q["context"] for q in given["questions"]}
    for question, (ids, cached) in got.items():
        n, fine = compare(ids, answers[config][question])
        check(f"{config} {question}: differs at token {n}", fine)
        check(f"{config} {question}: {cached} tokens not computed", cached == len(given["contexts"][contexts[question]]))
        whole += n == NEW
        excused += fine and n < NEW
    return f"{config} {whole} of {len(got)}" + (f" (+ {excused} up to a tie)" if excused else "")


def load(folder):
    with open(os.path.join(folder, "answers.json")) as f:
        return (*prompts(folder), json.load(f))


def file_name(config):
    return config.translate(str.maketrans(":=+.", "____"))


def batches(engine, folder, configs, dropped):
    prompt, given, answers = load(folder)
    ordinary = [ids[5:305] for ids in list(prompt.values())[:8:4]]  # no context begins like this
    for i, config in enumerate(configs):
        engine.use(file_name(config))
        if i == 0:
            own = [ids for ids, _ in engine.ask(ordinary)]
            engine.forget()
        questions = chosen(config, given["questions"])
        first = questions[0]
        alone = engine.ask([prompt[first]])
        compare_all(config, {first: alone[0]}, prompt, given, answers)
        engine.forget()
        got = engine.ask([prompt[q] for q in questions] + ordinary)
        print("vllm:", compare_all(config, dict(zip(questions, got)), prompt, given, answers), flush=True)
        check(f"{config}: ordinary requests in the batch", [ids for ids, _ in got[len(questions):]] == own)
        if dropped:
            check(f"{config}: blocks are left", engine.ask([ordinary[0][:40]], 3) and engine.blocks_in_use() == 0)


def keep(model, folder):
    engine = Engine(model, folder, "none")
    batches(engine, folder, ["none", "kivi:bits=4", "kivi:bits=2"], False)
    prompt, given, answers = load(folder)
    engine.use("none")
    question = max(answers["none"], key=lambda q: len(prompt[q]))  # vLLM has 2 blocks, the rest is loaded
    n = len(prompt[question])
    engine.ask([prompt[question][:300]], 1)
    got, cached = engine.ask([prompt[question]])[0]
    check("from the prefix cache on", compare(got, answers["none"][question])[1] and cached > n - 60)
    engine.forget()
    part = prompt[question][:700] + prompt[question][900:1000]   # shares 512 tokens in whole parts of 256
    got, cached = engine.ask([part], 8)[0]
    check(f"the beginning of a context: {cached} tokens", cached == 512)
    engine.forget()
    with_salt = engine.ask([part], 8, cache_salt="other")[0]
    check(f"another namespace has nothing: {with_salt[1]}", with_salt[1] == 0 and with_salt[0] == got)
    engine.close()


def drop(model, folder):
    engine = Engine(model, folder, "snapkv_drop_0_5", dropped=True)
    batches(engine, folder, ["snapkv:drop=0.5", "keydiff:drop=0.5", "knorm:drop=0.5", "snapkv:drop=0.5+kivi:bits=4"], True)
    engine.close()


def preempted(engine, ids, after=5):
    """The answer to a prompt whose request loses its blocks after a few tokens."""
    from vllm import SamplingParams

    llm, core, got = engine.llm.llm_engine, engine.core, []
    llm.add_request("preempted", {"prompt_token_ids": ids}, SamplingParams(temperature=0, max_tokens=NEW, ignore_eos=True))
    while llm.has_unfinished_requests():
        got += [list(out.outputs[0].token_ids) for out in llm.step()]
        if after and got and len(got[-1]) >= after:
            after = 0
            request = core.running.pop()
            core._preempt_request(request, time.monotonic())
            check("the request was preempted", request.num_preemptions == 1)
    return got[-1]


def share(model, folder):
    """Requests that load dropped rows and requests that do not, in one prefix cache."""
    prompt, given, answers = load(folder)
    config, engine = "snapkv:drop=0.5", Engine(model, folder, "snapkv_drop_0_5", dropped=True)
    serves, block = engine.connector.scheduler, engine.core.block_size
    question = min(answers[config], key=lambda q: len(prompt[q]))
    context = question.rsplit("-", 1)[0]
    n = len(given["contexts"][context])
    other = next(q for q in prompt if q.startswith(context) and q != question)

    def ask(what, q, placed, cached, expected=None):
        serves.serves = placed
        got, at = engine.ask([prompt[q]])[0]
        check(f"{what}: {at} tokens not computed, not {cached}", at == cached)
        check(f"{what}: the answer", expected is None or compare(got, expected)[1])
        return {"ids": got, "margins": [1] * NEW}

    plain = {}
    for q in (question, other):
        plain[q] = ask("nothing placed", q, False, 0)
        engine.forget()
    ask("dropped", question, True, n, answers[config][question])
    check("dropped: no block stays", not len(engine.core.kv_cache_manager.block_pool.cached_block_hash_to_block))
    ask("without placement after dropped", question, False, 0, plain[question])
    ask("a plain prefix is shared", other, False, n // block * block, plain[other])
    ask("and used where it has all of the context", question, True, (len(prompt[question]) - 1) // block * block,
        plain[question])
    engine.forget()
    serves.serves = False
    engine.ask([prompt[question][:300]], 1)  # two blocks
    ask("dropped, where vLLM has its beginning", question, True, n, answers[config][question])
    ask("the beginning is still shared", other, False, 300 // block * block, plain[other])
    engine.forget()
    serves.serves = True
    check("dropped, preempted", compare(preempted(engine, prompt[question]), answers[config][question])[1])
    engine.ask([prompt[question][:40]], 3)  # the steps in which vLLM takes the last blocks back
    check("blocks are left", engine.blocks_in_use() == 0 and not serves.salts)
    os.rename(folder + "/tiers/snapkv_drop_0_5", folder + "/tiers/away")
    try:
        ask("a load that fails", question, True, 0, plain[question])
        ask("its blocks are plain", other, False, n // block * block, plain[other])
    finally:
        os.rename(folder + "/tiers/away", folder + "/tiers/snapkv_drop_0_5")
    print(f"vllm: {context}: dropped rows and a shared prefix cache, beside each other and after a preemption", flush=True)
    engine.close()


def computed(engine, what, prompt):
    """That dropped rows are not loaded."""
    got = []
    for engine.connector.scheduler.serves in False, True:
        got += engine.ask([prompt])
        engine.forget()
    check(f"{what}: {[cached for _, cached in got]} tokens not computed, or two answers", got[0] == got[1] and got[0][1] == 0)


def speculate(model, folder):
    prompt, given, answers = load(folder)
    engine = Engine(model, folder, "snapkv_drop_0_5", dropped=True, speculative_config={
        "method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4})
    check("speculative decoding is named", "speculative decoding" in engine.connector.scheduler.no_drop)
    computed(engine, "speculative decoding, dropped tokens", prompt[next(iter(answers["snapkv:drop=0.5"]))])
    engine.use("none")
    question = next(iter(answers["none"]))
    print("vllm: speculative decoding:", compare_all("none", {question: engine.ask([prompt[question]])[0]}, prompt, given, answers),
          flush=True)
    engine.close()


def backend(model, folder):
    from evp import vllm_dropped

    prompt, _, answers = load(folder)
    vllm_dropped.covers = lambda names: False
    engine = Engine(model, folder, "snapkv_drop_0_5", dropped=True)
    computed(engine, "another backend", prompt[next(iter(answers["snapkv:drop=0.5"]))])
    check("the backend is named", "CPU_ATTN" in engine.connector.scheduler.no_drop)
    print("vllm: other attention backends are refused dropped tokens, by name", flush=True)
    engine.close()


def events(model, folder):
    """Routers are told of placed contexts with the hashes of vLLM's own events."""
    from vllm.config import KVEventsConfig
    from vllm.distributed.kv_events import BlockRemoved, BlockStored

    prompt, given, answers = load(folder)
    engine, said = Engine(model, folder, None, kv_events_config=KVEventsConfig(enable_kv_cache_events=True, publisher="null")), []
    engine.core.kv_event_publisher.publish = lambda batch: said.extend(batch.events)
    engine.use("none")
    question = next(iter(answers["none"]))
    context = given["contexts"][question.rsplit("-", 1)[0]]
    n, until = len(context) // engine.core.block_size, time.monotonic() + 60
    while not engine.connector.has_pending_push_work() and time.monotonic() < until:
        time.sleep(0.1)
    engine.ask([prompt[question]], 1)
    by = {medium: [e for e in said if isinstance(e, BlockStored) and e.medium == medium] for medium in ("GPU", "STORAGE")}
    check(f"{len(by['STORAGE'])} contexts are told", len(by["STORAGE"]) == len(given["contexts"]))
    told = next((e for e in by["STORAGE"] if e.token_ids == context[:len(e.token_ids)]), None)
    own = [one for e in by["GPU"] for one in e.block_hashes]
    check("the hashes are vLLM's", told and len(told.block_hashes) == n and own[:n] == told.block_hashes and told.ownership == "disk")
    with open(os.path.join(folder, "none.jsonl")) as f, open(os.path.join(folder, "empty.jsonl"), "w") as to:
        to.write(f.read().replace("tiers/none", "tiers/empty"))
    os.makedirs(os.path.join(folder, "tiers", "empty"), exist_ok=True)
    said.clear()
    engine.use("empty")
    until = time.monotonic() + 60
    while not said and time.monotonic() < until:
        engine.ask([[1, 2, 3]], 1)
    gone = {one for e in said if isinstance(e, BlockRemoved) and e.medium == "STORAGE" for one in e.block_hashes}
    check("all are told to be gone", gone == {one for e in by["STORAGE"] for one in e.block_hashes})
    print(f"vllm: events: {len(by['STORAGE'])} contexts told to routers, with the hashes of vLLM's own events", flush=True)
    os.rmdir(os.path.join(folder, "tiers", "empty"))
    engine.close()


def chunks(model, folder):
    prompt, given, answers = load(folder)
    engine = Engine(model, folder, "snapkv_drop_0_5", dropped=True, max_num_batched_tokens=16, enable_prefix_caching=False)
    for config in ("snapkv:drop=0.5", "none"):
        engine.use(file_name(config))
        some = chosen(config, given["questions"])[:2]
        got = dict(zip(some, engine.ask([prompt[q] for q in some])))
        print("vllm: in chunks of 16:", compare_all(config, got, prompt, given, answers), flush=True)
    engine.close()


def multi(model, folder):
    prompt, given, answers = load(folder)
    other = {"kv_connector": "ExampleConnector", "kv_role": "kv_both", "kv_load_failure_policy": "recompute",
             "kv_connector_extra_config": {"shared_storage_path": os.path.join(folder, "example")}}
    engine = Engine(model, folder, "none", transfer=lambda manifest: {
        "kv_connector": "MultiConnector", "kv_role": "kv_both", "kv_load_failure_policy": "recompute",
        "kv_connector_extra_config": {"connectors": [connector(manifest), other]}})
    some = chosen("none", given["questions"])[:2]
    got = dict(zip(some, engine.ask([prompt[q] for q in some])))
    print("vllm: before another connector:", compare_all("none", got, prompt, given, answers), flush=True)
    engine.close()


def fp8(model, folder):
    """The cache is coarser than the payload: the engine's own prefill into it is what to compare with."""
    prompt, given, _ = load(folder)
    engine = Engine(model, folder, "none", kv_cache_dtype="fp8", block_size=64)
    some = chosen("none", given["questions"])[:4]
    loaded = engine.ask([prompt[q] for q in some], 8)
    engine.connector.scheduler.serves = False
    engine.forget()
    own = engine.ask([prompt[q] for q in some], 8)
    same = sum(a == b for (x, _), (y, _) in zip(loaded, own) for a, b in zip(x, y))
    print(f"vllm: fp8 cache: {same} of {8 * len(some)} tokens are those of vLLM's own prefill", flush=True)
    check("fp8", same >= 6 * len(some) and all(cached > 500 for _, cached in loaded))
    engine.close()


def ranks(model, folder):
    prompt, given, answers = load(folder)
    os.environ["OMP_NUM_THREADS"] = "1"
    for config in "kivi:bits=4", "snapkv:drop=0.5":
        engine = Engine(model, folder, file_name(config), dropped="drop" in config, tensor_parallel_size=3,
                        distributed_executor_backend="mp")
        some = chosen(config, given["questions"])[:3]
        got = dict(zip(some, engine.ask([prompt[q] for q in some])))
        print("vllm: three ranks:", compare_all(config, got, prompt, given, answers), flush=True)
        engine.llm.llm_engine.engine_core.shutdown()
        engine.close()


def serve(model, folder):
    import socket, urllib.request

    prompt, given, answers = load(folder)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    transfer = json.dumps(connector(os.path.join(folder, "snapkv_drop_0_5.jsonl"), dropped=True))
    server = subprocess.Popen([sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", model, "--dtype",
                               "float32", "--enforce-eager", "--max-model-len", "2048", "--host", "127.0.0.1", "--port",
                               str(port), "--kv-transfer-config", transfer])
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(url + "/health")
                break
            except OSError:
                if server.poll() is not None:
                    break
                time.sleep(1)
        got = {}
        for q in chosen("snapkv:drop=0.5", given["questions"])[:4]:
            body = {"model": model, "prompt": prompt[q], "max_tokens": NEW, "temperature": 0, "ignore_eos": True,
                    "return_token_ids": True}
            ask = urllib.request.Request(url + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
            with urllib.request.urlopen(ask) as answer:
                got[q] = json.load(answer)["choices"][0]["token_ids"], len(given["contexts"][q.rsplit("-", 1)[0]])
        print("vllm: over HTTP:", compare_all("snapkv:drop=0.5", got, prompt, given, answers), flush=True)
        metrics = urllib.request.urlopen(url + "/metrics").read().decode()
        hits = [float(line.split()[-1]) for line in metrics.splitlines()
                if line.startswith("vllm:external_prefix_cache_hits_total")]
        check(f"hits in /metrics: {hits}", sum(hits) == sum(n for _, n in got.values()))
    finally:
        server.terminate()
        server.wait()


def speed(model, folder):
    """The longest prompt; medians of 5."""
    from statistics import median

    import torch
    from vllm.distributed.kv_transfer import get_kv_transfer_group

    import evp
    from evp.vllm import Load

    prompt, given, answers = load(folder)
    question = max(answers["none"], key=lambda q: len(prompt[q]))
    ids = prompt[question]
    n = len(given["contexts"][next(q["context"] for q in given["questions"] if q["id"] == question)])
    engine = Engine(model, folder, "none")
    worker = get_kv_transfer_group().worker

    def timed(what, expected, run):
        """Milliseconds."""
        times = []
        for _ in range(6):
            engine.forget()
            start = time.perf_counter()
            check(what, run() == expected)
            times.append(1e3 * (time.perf_counter() - start))
        return median(times[1:])

    def first_token(what, expected):
        ms = timed(what, expected, lambda: engine.ask([ids], 1)[0][1])
        print(f"vllm: first token after {n} + {len(ids) - n} tokens, {what}: {ms:.0f} ms", flush=True)

    def read(store):
        with store.payload(found) as payload:
            for layer in range(shape.n_layers):
                for what in "kv":
                    payload.rows(layer, what, (to.data_ptr(), to.numel() * 4), type="f32",
                                 strides=(shape.head_dim, shape.n_heads * shape.head_dim, 1))

    engine.connector.scheduler.serves = False
    first_token("computed", 0)
    engine.connector.scheduler.serves = True
    for config in "none", "kivi:bits=4":
        if config != "none":
            engine.use(file_name(config))
        first_token(f"{config} loaded", n)
        with evp.open(engine.manifest) as store:
            found = store.find(ids)
            shape = store.payload(found).shape
            to = torch.empty((shape.n_tokens, shape.n_heads, shape.head_dim))
            block = engine.core.block_size
            one = Load("x", None, found, 0, n, list(range(1, 1 - -n // block)), block)
            whole = timed("a load", 0, lambda: worker._load(one))
            alone = timed("the library", None, lambda: read(store))
        print(f"vllm: {config}: a load {whole:.0f} ms, the library alone {alone:.0f} ms, {whole / alone:.2f}", flush=True)
    engine.close()


if __name__ == "__main__":
    if len(sys.argv) == 3:
        sys.exit(any([subprocess.run([sys.executable, __file__, *sys.argv[1:], mode]).returncode for mode in MODES]))
    globals()[sys.argv[3]](*sys.argv[1:3])
    sys.exit(failures > 0)
