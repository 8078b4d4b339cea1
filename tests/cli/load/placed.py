"""placed.py MANIFEST LOAD - evp.placed, evp.lmcache and evp.sglang over real payloads and fakes of both engines; `LOAD
second` places other contexts. Token i of context a1 or a2 is 97000 + i, so a2 continues a1."""
import array, ctypes, hashlib, importlib.metadata, itertools, os, shutil, subprocess, sys, time, types
from concurrent.futures import ThreadPoolExecutor

manifest, script = sys.argv[1:]
CHUNK, LAYERS, HEADS, DIM = 32, 2, 3, 64


def chain(tokens, size):
    """A hash of every whole chunk, over it and the one before."""
    out, last = [], b""
    for i in range(0, len(tokens) - size + 1, size):
        last = hashlib.sha256(last + array.array("I", tokens[i:i + size]).tobytes()).digest()
        out.append(last)
    return out


# ---- fakes of what the adapters import


class Bitmap(set):
    def __init__(self, n):
        super().__init__()

    set = set.add


class TokenHasher:
    def __init__(self, chunk_size, algorithm):
        self.chunk_size = chunk_size

    def compute_chunk_hashes(self, tokens):
        return chain(tokens, self.chunk_size)


class Notifier:
    def __init__(self):
        self.told = ThreadPoolExecutor(1)

    fileno, notify, close = (lambda self: id(self)), (lambda self: None), (lambda self: self.told.shutdown())


def fake(name, **members):
    for n in range(1, name.count(".") + 2):
        part = ".".join(name.split(".")[:n])
        sys.modules.setdefault(part, types.ModuleType(part))
    vars(sys.modules[name]).update(members)


fake("lmcache.lmcache_native", Bitmap=Bitmap)
fake("lmcache.v1.distributed.internal_api", L2StoreResult=lambda ok, n: (ok, n))
fake("lmcache.v1.distributed.l2_adapters.base", L2AdapterInterface=object)
fake("lmcache.v1.multiprocess.token_hasher", TokenHasher=TokenHasher)
fake("lmcache.v1.platform", create_event_notifier=Notifier,
     current_device_spec=types.SimpleNamespace(backend_name="cuda"))
fake("sglang.srt.mem_cache.hicache_storage", HiCacheStorage=type("HiCacheStorage", (), {
    "register_mem_pool_host": lambda self, pool: setattr(self, "mem_pool_host", pool)}))
fake("sglang.srt.mem_cache.utils",
     get_hash_str=lambda tokens, prior, page_size: [h.hex() for h in chain(tokens, page_size)])
importlib.metadata.version = lambda name: "0.0.1"

import evp
from evp import engine, lmcache, placed, sglang

engine.logger.warning = lambda _, sentence: print("said:", sentence.split(": '/")[0])
opened = []
open_payload = evp.Store.payload
evp.Store.payload = lambda self, prefix: opened.append(prefix) or open_payload(self, prefix)


def model(cache):
    return engine.Model(LAYERS, HEADS, DIM, cache["rope"], "bf16", "hub/Tiny")


def tokens(id, n):
    return [1000 * ord(id) + i for i in range(n)]


def reference(store, id, n, chunk, type):
    """(K or V, layer, head, row) -> bytes of a row of a chunk, by one read of one head."""
    with store.payload(store.find(tokens(id, n))) as payload:
        out, size = {}, CHUNK * DIM * (4 if type == "f32" else 2)
        for w, layer, head in itertools.product(range(2), range(LAYERS), range(HEADS)):
            rows = bytearray(size)
            payload.rows(layer, "kv"[w], rows, heads=(head, head + 1), rows=(chunk * CHUNK, (chunk + 1) * CHUNK),
                         type=type)
            for row in range(CHUNK):
                out[w, layer, head, row] = bytes(rows[row * size // CHUNK:(row + 1) * size // CHUNK])
        return out


# ---- hashes, and what a refresh opens
space = placed.Placed(engine.Store(manifest), lambda ids: chain(ids, CHUNK), model, ThreadPoolExecutor(1))


def refresh(text):
    space._due = 0
    space.refresh(None)
    print(f"{text}: {len(opened)} opened, {len(space.contexts)} contexts, {len(space.where)} hashes, "
          f"{len(space.shared)} shared")
    opened.clear()


print("placed:")
refresh("first")
refresh("again")
payload, number = space.open(chain(tokens("a", 128), CHUNK)[3])
print("chunk", number, "of", payload.shape.n_tokens, "tokens")
a, b = chain(tokens("a", 150), CHUNK), chain(tokens("b", 130), CHUNK)
opened.clear()
subprocess.run(["sh", "-c", f'set -- second; . {script}'], check=True)
refresh("two new, two gone")
print("a1 is gone, a2 has its chunks:", {space.where[h].prefix.n_tokens for h in a})
print("b1 is of another config:", space.where[b[0]].prefix.config)
opened.clear()

# ---- metrics, and why nothing is found
engine.METRICS_S = 0.05
settings = engine.settings({"manifest": manifest, "metrics": "engine-%p.prom"})
store, salted = engine.open(settings, None), engine.open(settings, "a salt")
store.find(tokens("a", 150))
at, text = f"engine-{os.getpid()}.prom", ""
for _ in range(200):
    time.sleep(0.05)
    text = open(at).read() if os.path.exists(at) else ""
    if "evp_finds_total" in text and f'evp_finds_total{{process="engine-{os.getpid()}"}} 0' not in text:
        break
print("metrics:", [line.split()[1] for line in text.splitlines() if line.startswith("evp_finds_total")], len(
    [name for name in os.listdir() if name.endswith(".prom")]), "file")
store.close()
salted.close()
misses, said = engine.Misses(), []
engine.logger.info = lambda text, *more: said.append(text % more)
for reason in "of which no beginning is placed", "with a LoRA adapter", "of which no beginning is placed":
    misses.note(reason)
misses.say()
misses.since -= engine.MISSES_S
misses.say()
misses.say()
print(*said, sep="\n")

# ---- LMCache
print("lmcache:")


def shapes(width, chunk=CHUNK):
    """Of chunks with K and V apart, and as vLLM has them: beside each other in every head."""
    return {"split": [2, LAYERS, chunk, width], "SGLang": [1, 2 * LAYERS, chunk, width],
            "SGLang's own": [2 * LAYERS, chunk, width], "vLLM": [1, LAYERS, chunk, 2 * width],
            "vLLM's own": [LAYERS, chunk, 2 * width]}


class Object:
    """A buffer of LMCache: a chunk of a rank, and some bytes after it that nobody may touch."""

    def __init__(self, ranks=1, type="torch.bfloat16", chunk=CHUNK, form="split"):
        self.shape, self.type = shapes(HEADS // ranks * DIM, chunk)[form], type
        self.bytes = ctypes.create_string_buffer(2 * LAYERS * chunk * HEADS //
                                                 ranks * DIM * (4 if "32" in type else 2) + 16)
        self.data_ptr = ctypes.addressof(self.bytes)

    get_shapes, get_dtypes = (lambda self: [self.shape]), (lambda self: [self.type])


def key(chunk_hash, rank=0, ranks=1, model="hub/tiny", salt="", group=0):
    return types.SimpleNamespace(chunk_hash=chunk_hash, model_name=model,
                                 kv_rank=ranks << 24 | rank << 16 | ranks << 8 | rank,
                                 object_group_id=group, cache_salt=salt)


def result(query, task):
    while True:
        got = query(task)
        if got is not None:
            return sorted(got)


adapter = lmcache.EvpL2Adapter({"manifest": manifest, "model": "hub/tiny", "chunk_size": CHUNK, "lora": "none"})
keys = [key(h) for h in a + b] + [key(a[0], model="Org/other"), key(a[0], group=1), key(a[0], salt="tenant"), key(b"?")]
found = result(adapter.query_lookup_and_lock_result, adapter.submit_lookup_and_lock_task(keys, {}))
print("found", found, "of", len(keys))
narrow = {0: types.SimpleNamespace(shapes=[[2, LAYERS, CHUNK, 2 * DIM]], dtypes=["torch.bfloat16"])}
print("narrow", result(adapter.query_lookup_and_lock_result, adapter.submit_lookup_and_lock_task(keys[:1], narrow)))
told = lmcache.EvpL2Adapter({"manifest": manifest, "model": "hub/tiny", "chunk_size": CHUNK, "lora": "none", "device": "cuda"})
for form, (ranks, type, name) in itertools.product(shapes(1), (
        (1, "torch.bfloat16", "bf16"), (3, "torch.bfloat16", "bf16"), (3, "torch.float32", "f32"))):
    want, heads, equal = reference(space.store, "a", 150, 2, name), HEADS // ranks, 0
    for rank in range(ranks):
        obj = Object(ranks, type, form=form)
        assert result(told.query_load_result, told.submit_load_task([key(a[2], rank, ranks)], [obj])) == [0]
        order = (range(2), range(LAYERS), range(CHUNK), range(heads))
        if "vLLM" in form:
            order = order[1:] + order[:1]
        made = b"".join(want[at["w"], at["l"], rank * heads + at["h"], at["t"]] for at in (
            dict(zip("lthw" if "vLLM" in form else "wlth", each)) for each in itertools.product(*order)))
        equal += obj.bytes.raw == made + bytes(16)
    print(f"{form}, {ranks} ranks, {name}: {equal} equal")
told.close()
for lmcache._DEVICE in "cuda", "cpu", "rocm":
    for form, shape in shapes(HEADS * DIM).items():
        layout, engine._said = {0: types.SimpleNamespace(shapes=[shape], dtypes=["torch.bfloat16"])}, set()
        hits = result(adapter.query_lookup_and_lock_result, adapter.submit_lookup_and_lock_task(keys[:2], layout))
        got = result(adapter.query_load_result, adapter.submit_load_task(keys[:1], [Object(form=form)]))
        print(f"LMCache on {lmcache._DEVICE}, {form}: found {len(hits)}, loaded {len(got)}")
for more in {}, {"lora": "some"}, {"device": "cpu"}:
    try:
        unsure = lmcache.EvpL2Adapter({"manifest": manifest, "model": "hub/tiny", "chunk_size": CHUNK, **more})
        hits = result(unsure.query_lookup_and_lock_result, unsure.submit_lookup_and_lock_task(keys, {}))
        got = result(unsure.query_load_result, unsure.submit_load_task(keys[:1], [Object()]))
        print(f"nothing said of LoRA: found {len(hits)}, loaded {len(got)}")
        unsure.close()
    except ValueError as error:
        print(error)
objects = [Object(1, "torch.float8_e4m3fn"), Object(chunk=CHUNK // 2), Object()]
print("loaded", result(adapter.query_load_result, adapter.submit_load_task([key(a[0]), key(a[0]), key(a[0])], objects)))
adapter.misses.counts.clear()
for asked in [key(b"0" * 32)], [key(a[0], model="x")], [key(a[0], salt="nobody")], keys[:1], []:
    result(adapter.query_lookup_and_lock_result, adapter.submit_lookup_and_lock_task(asked, {}))
print("misses:", dict(adapter.misses.counts))
adapter.submit_store_task(keys[:1], objects[:1])
print("stored", list(adapter.pop_completed_store_tasks().values()), list(adapter.pop_completed_store_tasks()))
adapter.close()

# ---- SGLang
print("sglang:")


class Pool:
    """A host pool of SGLang, its buffer without torch: the dimensions of each layout by name."""
    dims = {"layer_first": "wltrd", "page_first": "wtlrd", "page_first_direct": "wplkrd", "page_head": "wprkld"}

    def __init__(self, layout, heads=HEADS, dtype="torch.bfloat16"):
        n = {"w": 2, "l": LAYERS, "t": 4 * CHUNK, "p": 4, "k": CHUNK, "r": heads, "d": DIM}
        self.layout, self.head_num, self.head_dim, self.v_head_dim, self.dtype = layout, heads, DIM, DIM, dtype
        self.layer_num, self.start_layer, self.end_layer, self.page_size = LAYERS, 0, LAYERS, CHUNK
        self.names = self.dims.get(layout, "")
        self.strides, size = {}, 1
        for name in reversed(self.names):
            self.strides[name], size = size, size * n[name]
        self.bytes = ctypes.create_string_buffer(2 * size)
        self.kv_buffer = types.SimpleNamespace(stride=lambda: tuple(self.strides[name] for name in self.names),
                                               data_ptr=lambda: ctypes.addressof(self.bytes))

    def row(self, w, layer, token, head):
        at = {"w": w, "l": layer, "t": token, "p": token // CHUNK, "k": token % CHUNK, "r": head, "d": 0}
        i = 2 * sum(at[name] * self.strides[name] for name in self.names)
        return self.bytes.raw[i:i + 2 * DIM]


class Indices(list):
    tolist, __getitem__ = (lambda self: list(self)), (lambda self, i: Indices(list.__getitem__(self, i)))


def backend(pool, rank=0, size=1, **more):
    extra = {"backend_name": "evp", "interface_v1": 1, "manifest": manifest}
    said = dict(tp_rank=rank, tp_size=size, pp_size=1, attn_cp_size=1, is_mla_model=False, model_name="hub/Tiny")
    config = types.SimpleNamespace(**{**said, "extra_config": extra, **more})
    made = sglang.EvpHiCache(config)
    made.register_mem_pool_host(pool)
    return made


for layout, (rank, size) in itertools.product(Pool.dims, ((0, 1), (1, 3))):
    pool = Pool(layout, HEADS // size)
    made = backend(pool, rank, size)
    hits = made.batch_exists([h.hex() for h in a] + ["00" * 32, a[0].hex()])
    got = made.batch_get_v1([a[2].hex(), "00" * 32], Indices(range(64, 128)))
    want = reference(space.store, "a", 150, 2, "bf16")
    equal = all(pool.row(w, layer, 64 + row, head - rank * HEADS // size) == rows
                for (w, layer, head, row), rows in want.items()
                if rank * HEADS // size <= head < (rank + 1) * HEADS // size)
    used = sum(map(bool, pool.bytes.raw)) <= 2 * 2 * LAYERS * CHUNK * pool.head_num * DIM  # one page, and no other
    print(layout, f"rank {rank} of {size}: {hits} hits, loaded {got}, equal {equal}, only there {used}")
    made.batch_exists(["00" * 32, a[0].hex()])
    assert dict(made.misses.counts) == {"of which no beginning is placed": 1}, made.misses.counts
    made.close()
for text, pool, more in (("unified", Pool("page_unified"), {}), ("mla", Pool("layer_first"), {"is_mla_model": True}),
                         ("fp8", Pool("layer_first", dtype="torch.float8_e5m2"), {}),
                         ("other", Pool("layer_first"), {"model_name": "x"})):
    try:
        made = backend(pool, **more)
        print(text, made.batch_exists([a[0].hex()]))
        made.close()
    except ValueError as error:
        print(text, error)

# ---- a manifest that is missing when the engines start, damaged, there, and gone again
print("late:")
made = backend(Pool("layer_first"), extra_config={"manifest": "late.jsonl"})
adapter = lmcache.EvpL2Adapter({"manifest": "late.jsonl", "model": "hub/tiny", "chunk_size": CHUNK, "lora": "none"})


def found():
    """Pages that SGLang finds, and chunks that LMCache finds, two of them for a tenant."""
    task = adapter.submit_lookup_and_lock_task([key(h) for h in a] + [key(h, salt="tenant") for h in a[:2]], {})
    hits = made.batch_exists([h.hex() for h in a]), len(result(adapter.query_lookup_and_lock_result, task))
    for space in made.placed, adapter.spaces[""]:
        space.refresh(None)
    return hits


def soon(what, want):
    until = time.monotonic() + 60
    while found() != want and time.monotonic() < until:
        time.sleep(0.1)
    print(f"{what}: {found()}", flush=True)


soon("missing", (0, 0))
with open("late.jsonl", "w") as f:
    f.write('{"evp":')
time.sleep(1.1)
soon("damaged", (0, 0))
shutil.copy(manifest, "late.jsonl")
soon("there", (4, 4))
os.remove("late.jsonl")
time.sleep(1.1)
soon("gone", (4, 4))
subprocess.run(["evp-load", "-q", manifest, "-p", "pay", "--namespace=tenant"], check=True)
soon("for a tenant too, but the manifest is gone", (4, 4))
shutil.copy(manifest, "late.jsonl")
soon("and back", (4, 6))
subprocess.run(["evp-load", "-q", manifest, "--retire=tenant"], check=True)
made.close()
adapter.close()

# ---- payloads that are damaged, and removed, while they are served
print("damaged, removed:")
for damage in ("for f in dram/evp-payloads/*/*; do chmod 600 $f; truncate -s -8 $f; echo damaged >>$f; done",
               "rm -f dram/evp-payloads/*/*"):
    made = backend(Pool("layer_first"))
    subprocess.run(damage, shell=True, check=True)
    print(made.batch_exists([a[0].hex()]), made.batch_get_v1([a[0].hex()], Indices(range(32))))
    made.close()
