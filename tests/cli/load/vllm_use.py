"""vllm_use.py MANIFEST FILE - evp.vllm between a real store and stand-ins for vLLM and torch. FILE is c1's payload."""
import contextlib, ctypes, json, os, sys, time, types


def module(name, **members):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__dict__.update(members)
    return sys.modules[name]


# ---- torch: vectors of integers, and buffers -------------------------------------------------------------------------


class Vector(list):
    def __getitem__(self, i):
        return Vector(self[j] for j in i) if isinstance(i, Vector) else list.__getitem__(self, i)

    def __floordiv__(self, n):
        return Vector(i // n for i in self)

    def __mod__(self, n):
        return Vector(i % n for i in self)

    def __mul__(self, n):
        return Vector(i * n for i in self)

    def __add__(self, other):
        return Vector(i + j for i, j in zip(self, other))

    def to(self, device):
        return self


class Buffer:
    """[rows, heads, dim] of f32."""
    device = types.SimpleNamespace(type="cpu")

    def __init__(self, shape, **_):
        self.at = (ctypes.c_float * (shape[0] * shape[1] * shape[2]))()

    def row(self, i):
        return bytes(self.at)[256 * i:256 * i + 256]  # as bytes: the numbers may be NaN

    def data_ptr(self):
        return ctypes.addressof(self.at)

    def numel(self):
        return len(self.at)

    def element_size(self):
        return 4

    def to(self, device, non_blocking):
        return self


module("torch", float32="float32", float16="float16", bfloat16="bfloat16", empty=Buffer, int32="int32", tensor=Vector,
       arange=lambda a, b: Vector(range(a, b)), zeros=lambda n, **_: [0] * n)

# ---- vLLM ------------------------------------------------------------------------------------------------------------


class Base:
    def __init__(self, vllm_config, role, kv_cache_config):
        self._kv_transfer_config = vllm_config.kv_transfer_config

    def bind_connector_metadata(self, meta):
        self._meta = meta

    def _get_connector_metadata(self):
        return self._meta


Role = types.SimpleNamespace(SCHEDULER="scheduler", WORKER="worker")
module("vllm", __version__="0.32.0")
module("vllm.distributed", get_tensor_model_parallel_rank=lambda: 0)
for name in "vllm.distributed.kv_transfer", "vllm.distributed.kv_transfer.kv_connector", "vllm.distributed.kv_transfer.kv_connector.v1":
    module(name)
class Counted:
    """prometheus_client's Counter, of what vllm's metrics are registered with."""
    at = {}

    def __init__(self, name, labelnames, documentation):
        self.name, self.names = name, labelnames

    def labels(self, *values):
        assert len(values) == len(self.names)
        return types.SimpleNamespace(inc=lambda n: self.at.__setitem__((self.name, *values), self.at.get((self.name, *values), 0) + n))


class ConnectorStats:
    def __init__(self, data=None):
        self.data = {} if data is None else data


class PromMetrics:
    def __init__(self, config, kinds, labels, values):
        self._counter_cls, self.per_engine_labelvalues = kinds["counter"], values


module("vllm.distributed.kv_transfer.kv_connector.v1.metrics", KVConnectorStats=ConnectorStats, KVConnectorPromMetrics=PromMetrics)
module("vllm.distributed.kv_transfer.kv_connector.v1.base", KVConnectorBase_V1=Base, KVConnectorMetadata=object,
       KVConnectorRole=Role, KVConnectorWorkerMetadata=object, SupportsHMA=object)


class Event:
    def __init__(self, **members):
        self.__dict__.update(members)


class BlockStored(Event):
    pass


class BlockRemoved(Event):
    pass


def hash_block_tokens(hash_fn, before, tokens):
    assert type(tokens) is list
    return hash_fn((before, tokens))


module("vllm.utils")
module("vllm.utils.hashing", get_hash_fn_by_name=lambda name: lambda what: f"{name} {what}")
module("vllm.distributed.kv_events", MEDIUM_STORAGE="STORAGE", BlockStored=BlockStored, BlockRemoved=BlockRemoved)
KV_CACHE_UTILS = module("vllm.v1.core.kv_cache_utils", hash_block_tokens=hash_block_tokens, maybe_convert_block_hash=lambda one: one)


class Backends(dict):
    __members__ = property(lambda self: self)


class Backend:
    def __init__(self, path):
        self.path = path

    def get_path(self):
        return self.path

    def is_overridden(self):
        return self.path != "vllm's own"


BACKENDS = Backends(CPU_ATTN=Backend("vllm's own"), OTHER=Backend("vllm's own"))
for name in "vllm.v1", "vllm.v1.attention", "vllm.v1.attention.backends":
    module(name)
module("vllm.v1.core", kv_cache_utils=KV_CACHE_UTILS)
module("vllm.v1.attention.backends.registry", AttentionBackendEnum=BACKENDS,
       register_backend=lambda backend, path: setattr(backend, "path", path))

import evp                                # noqa: E402
from evp import engine, vllm_dropped      # noqa: E402
from evp.vllm import EvpConnector         # noqa: E402

said = []
engine.logger = types.SimpleNamespace(warning=lambda form, *values: said.append(form % values))
TEXTS = {"cache": json.dumps({"dtype": "f32", "n_layers": 1, "n_heads": 1, "n_kv_heads": 1, "head_dim": 64,
                              "rope": {"theta": 10000, "dims": 64, "scaling": "default"}}), "model_name": "Tiny",
         "model_digest": "01" * 32}
evp.Payload.text = lambda self, name: TEXTS[name]


class FullAttentionSpec:
    sliding_window = None


class MLAAttentionSpec:
    pass


class Layer:
    """A layer of attention: remembers which row is in which slot."""

    def __init__(self):
        self.impl, self.kv_cache, self.slots = self, None, {}
        self.num_kv_heads = 1
        self.attn_backend = types.SimpleNamespace(get_name=lambda: "OTHER")

    def do_kv_cache_update(self, layer, key, value, cache, slots):
        for i, slot in enumerate(slots):
            self.slots[slot] = key.row(i), value.row(i)


def config(extra, layer=None, **more):
    S = types.SimpleNamespace
    hf = S(num_hidden_layers=1, rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
    model = S(hf_text_config=hf, get_head_size=lambda: 64, get_total_num_kv_heads=lambda: 1, dtype="float32", model="/m/tiny")
    out = S(kv_transfer_config=S(kv_connector_extra_config=extra, kv_load_failure_policy="recompute"), model_config=model,
            cache_config=S(block_size=16, enable_prefix_caching=False), parallel_config=S(tensor_parallel_size=1),
            speculative_config=None, kv_events_config=None, compilation_config=S(static_forward_context={"model.layers.0.attn": layer}))
    out.__dict__.update(more)
    return out


def cache_config(*specs):
    return types.SimpleNamespace(kv_cache_groups=[types.SimpleNamespace(kv_cache_spec=s) for s in specs], num_blocks=99)


class Pool(list):
    """Blocks that somebody besides their request holds."""
    touch, evicted = list.extend, ()

    def evict_blocks(self, blocks):
        self.evicted = blocks

    def free_blocks(self, blocks):
        for block in blocks:
            self.remove(block)


class Engine:
    """Both halves, and the steps of a scheduler."""

    def __init__(self, specs=(FullAttentionSpec(),), changes={}, **extra):
        self.layer, self.pool, specs = Layer(), Pool(), cache_config(*specs)
        given = config({"manifest": sys.argv[1], **extra}, self.layer, **changes)
        self.one, self.other = EvpConnector(given, "scheduler", specs), EvpConnector(given, "worker", specs)
        self.one.bind_gpu_block_pool(self.pool)
        self.other.register_kv_caches({"model.layers.0.attn": types.SimpleNamespace(device=Buffer.device)})

    def ask(self, request, computed=0):
        return self.one.get_num_new_matched_tokens(request, computed)

    def load(self, request, blocks, computed=0):
        n, later = self.ask(request, computed)
        assert n and later
        at = types.SimpleNamespace(get_block_ids=lambda: [blocks], blocks=[blocks])
        self.one.update_state_after_alloc(request, at, n)
        return n

    def step(self, finished=(), preempted=(), wait=True, grown=()):
        """One step: what the scheduler says, and what the worker has done: (requests, blocks that failed)."""
        more = types.SimpleNamespace(req_ids=[name for name, _ in grown], new_block_ids=[[blocks] for _, blocks in grown])
        meta = self.one.build_connector_meta(types.SimpleNamespace(finished_req_ids=set(finished),
                                                                   preempted_req_ids=set(preempted), scheduled_cached_reqs=more))
        self.other.handle_preemptions(meta)
        self.other.bind_connector_metadata(meta)
        self.other.start_load_kv(None)
        until = time.monotonic() + 60
        while wait and self.other.worker.results.qsize() < len(self.other.worker.loading) and time.monotonic() < until:
            time.sleep(0.01)
        return self.other.get_finished(set(finished))[1], self.other.get_block_ids_with_load_errors()


def request(name, letter, n, **more):
    ids = [1000 * ord(letter) + i for i in range(n)]
    given = dict(request_id=name, prompt_token_ids=ids, num_tokens=n, num_preemptions=0, lora_request=None, mm_features=[],
                 prompt_embeds=None, pooling_params=None, cache_salt=None)
    one = types.SimpleNamespace(block_hashes=[], **{**given, **more})
    one.update_block_hashes = lambda: one.block_hashes.extend([f"{one.cache_salt} {i}" for i in range(n // 16)])
    one.update_block_hashes()
    return one


def rows(letter, n):
    """(key, value) of each row that the store has."""
    with evp.open(sys.argv[1]) as store, store.payload(store.find(request("", letter, n).prompt_token_ids)) as payload:
        k, v = (Buffer((payload.shape.n_rows, 1, 64)) for _ in range(2))
        for side, to in ("k", k), ("v", v):
            payload.rows(0, side, (to.data_ptr(), 4 * to.numel()), type="f32")
        return [(k.row(i), v.row(i)) for i in range(payload.shape.n_rows)]


def finds(e):
    assert e.ask(request("1", "c", 120)) == (90, True)
    assert e.ask(request("2", "z", 120)) == (0, False)
    assert e.ask(request("3", "c", 90)) == (89, True)            # one token must be computed
    assert e.ask(request("4", "c", 120), 32) == (58, True)       # two blocks are in vLLM's own cache
    assert e.ask(request("5", "c", 120), 96) == (0, False)
    for name in "lora_request", "mm_features", "prompt_embeds", "pooling_params":
        assert e.ask(request(name, "c", 120, **{name: [1]})) == (0, False), name
    assert e.ask(request("6", "c", 120, prompt_token_ids=None)) == (0, False)


def salts(e):
    def ask(name, letter, salt):
        until = time.monotonic() + 60
        while time.monotonic() < until:
            found = e.ask(request(name, letter, 210, cache_salt=salt))
            if found != (None, False):
                return found
            time.sleep(0.05)

    assert ask("1", "c", "tenant") == ask("2", "c", "nobody") == ask("3", "b", "tenant\0") == (0, False)
    assert ask("4", "b", "tenant") == (60, True) and e.one.scheduler.found["4"][2].config == "none"
    assert ask("5", "b", None) == (200, True) and e.one.scheduler.found["5"][2].config == "kivi:bits=2"
    # salts are the clients': those without contexts, or that are no text, take nobody's place
    for i in range(66):
        assert ask(f"s{i}", "b", f"nobody {i}" if i % 2 else f"\ud800{i}") == (0, False)
    assert ask("6", "b", "tenant") == (60, True)
    assert set(e.one.scheduler.stores.at) == {None, "tenant"} and not e.one.scheduler.opening


def writes(e):
    for letter, n, first in ("c", 90, 0), ("b", 200, 32):
        blocks = [7, 3, 5, 20, 11, 40, 30, 31, 32, 33, 34, 35, 36]
        assert e.load(request(letter, letter, n + 10), blocks, first) == n - first
        assert e.step() == ({letter}, set())
        want = {blocks[i // 16] * 16 + i % 16: row for i, row in enumerate(rows(letter, n)) if i >= first}
        assert e.layer.slots == want, letter
        e.layer.slots.clear()


@contextlib.contextmanager
def damaged():
    """A byte of c1's payload, meanwhile."""
    def change():
        with open(sys.argv[2], "r+b") as f:
            f.seek(-100, 2)
            old = f.read(1)
            f.seek(-100, 2)
            f.write(bytes([old[0] ^ 1]))

    change()
    yield
    change()


def fails(e):
    r = request("r", "c", 120)
    with damaged():
        still_fails(e, r)


def still_fails(e, r):
    assert e.load(r, [10, 11, 12, 13, 14, 15, 16, 17], 32) == 58
    assert e.step() == ({"r"}, {12, 13, 14, 15})
    assert e.ask(r) == (0, False)                                # it would fail again
    r.num_preemptions = 1
    assert e.ask(r) == (90, True)
    e.one.request_finished(r, [])
    assert e.ask(request("r", "c", 120)) == (90, True) and not e.one.scheduler.tried


def counts():
    e = Engine()
    loaded, missed = request("1", "c", 120), request("2", "z", 60)
    assert e.load(loaded, list(range(60, 68))) == 90 and e.step() == ({"1"}, set())
    e.ask(missed)
    for r in (loaded, missed):
        e.one.request_finished(r, [])
    said = e.one.get_kv_connector_stats()
    assert said.data == {"that loaded a context": 1, "of which no beginning is placed": 1}, said.data
    assert e.one.get_kv_connector_stats() is None and e.other.get_kv_connector_stats() is None
    both = e.one.build_kv_connector_stats(dict(said.data)).aggregate(said)
    metrics = e.one.build_prom_metrics(None, {"counter": Counted}, ["model", "engine"], {0: ["m", "0"]})
    metrics.observe(both.data)
    assert Counted.at[("vllm:evp_prompts", "m", "0", "that loaded a context")] == 2 and not both.is_empty()


def drops():
    a = lambda name: request(name, "a", 60)
    vllm_dropped._layers.clear()
    e = Engine(dropped=True)
    assert e.ask(a("1")) == (0, False)                           # the plugin is not loaded
    vllm_dropped.register()
    assert BACKENDS["CPU_ATTN"].path == "evp.vllm_dropped.CPU_ATTN" and BACKENDS["OTHER"].path == "vllm's own"
    e = Engine()
    assert e.ask(a("2")) == (0, False)                           # nobody asked for it
    for changes in ({"speculative_config": 1},
                    {"parallel_config": types.SimpleNamespace(tensor_parallel_size=1, decode_context_parallel_size=2)}):
        assert Engine(dropped=True, changes=changes).ask(a("3")) == (0, False), changes
    e = Engine(dropped=True)
    assert e.load(a("4"), [9, 8, 7, 6]) == 50
    assert e.step() == ({"4"}, {9, 8, 7, 6})                     # another attention backend
    e.one.update_connector_output(types.SimpleNamespace(kv_connector_worker_meta=e.other.build_connector_worker_meta(),
                                                        finished_sending=None))
    assert e.ask(a("4b")) == (0, False) and "backend OTHER" in said[-1] and not e.other.build_connector_worker_meta()
    vllm_dropped._layers.add("model.layers.0.attn")
    e = Engine(dropped=True)
    assert e.ask(request("50", "a", 50)) == (0, False)
    five = a("5")
    assert e.ask(five, 48) == (0, False) and five.cache_salt is None     # vLLM has the context itself, but for 2 tokens
    assert e.ask(five, 16) == (None, False)                      # it has the beginning: these rows begin in another block
    own = five.block_hashes[:]
    assert len(own) == 3 and own[0] != "None 0" and e.ask(five) == (50, True) and five.block_hashes == own
    assert e.load(five, [9, 8, 7, 6]) == 50 and e.pool == [9]
    assert e.step() == ({"5"}, set())
    assert sorted(e.layer.slots) == list(range(128, 137)) + list(range(144, 160))      # 25 rows
    assert vllm_dropped._less[9] == 25
    five.num_preemptions = 1
    assert e.ask(five, 48) == (None, False) and five.block_hashes[0] != own[0]      # its own blocks are not its prefix
    assert e.ask(five) == (50, True)
    e.one.scheduler.found.clear()
    e.one.request_finished(five, [9, 8, 7])
    assert e.pool.evicted == {9, 8, 7} and not e.one.scheduler.salts
    e.step(finished=["5"])
    assert not any(vllm_dropped._less) and e.pool == [9]         # the workers know, but this step's blocks are given out
    e.step()
    assert e.pool == []
    e.load(a("6"), [4, 5, 6, 7])
    e.step()
    e.step(preempted=["6"])
    assert not any(vllm_dropped._less)
    e.load(a("7"), [3, 5, 6, 7])                                 # aborted while it is loaded
    e.other.start_load_kv, start = (lambda context: None), e.other.start_load_kv
    e.step()
    loads = e.other._meta.loads
    e.other.worker.loading.add("7")
    e.step(finished=["7"], wait=False)
    e.other.start_load_kv = start
    e.other._meta.loads = loads
    e.other.start_load_kv(None)
    until = time.monotonic() + 60
    while not e.other.worker.results.qsize() and time.monotonic() < until:
        time.sleep(0.01)
    assert e.other.get_finished(set()) == (None, {"7"}) and not any(vllm_dropped._less)


def fails_apart():
    """A load of dropped rows that fails: what is computed instead is anybody's."""
    e, r = Engine(dropped=True), request("r", "a", 60)
    e.load(r, [1, 2, 3, 4])
    assert r.cache_salt and e.ask(r) == (0, False) and r.cache_salt is None and r.block_hashes[0] == "None 0"
    assert not e.one.scheduler.salts


def events():
    """What routers are told: the blocks of what this engine can load, once, with their tokens."""
    S = types.SimpleNamespace
    KV_CACHE_UTILS.NONE_HASH = b""
    changes = {"cache_config": S(block_size=16, enable_prefix_caching=True, prefix_caching_hash_algo="sha"),
               "kv_events_config": S(enable_kv_cache_events=True)}
    e, got = Engine(changes=changes), []

    def told(n):
        until = time.monotonic() + 60
        while len(got) < n and time.monotonic() < until:
            got.extend(e.one.take_events())
            time.sleep(0.05)
        return got

    told(4)
    time.sleep(1.5)
    letter = {100 // 16: "a", 200 // 16: "b", 90 // 16: "c", 40 // 16: "d"}      # a2 has dropped tokens
    assert sorted(len(one.block_hashes) for one in told(4)) == sorted(letter)
    for one in got:
        n = len(one.block_hashes)
        tokens = request("", letter[n], 16 * n).prompt_token_ids
        assert one.token_ids == tokens and one.medium == "STORAGE" and one.ownership in ("dram", "ssd") and one.block_size == 16
        assert one.block_hashes[0] == f"sha {(None, tokens[:16])}" and one.block_hashes[1] == f"sha {(one.block_hashes[0], tokens[16:32])}"
    told_by = e.one.scheduler.events
    tier, first = next((tier, hashes) for (_, tier), hashes in told_by.told.items() if len(hashes) > 3)
    assert not e.one.has_pending_push_work()
    shared = first[:3]
    told_by.told["x", tier] = shared
    told_by.owners.update((one, tier) for one in shared)
    nothing = S(list=lambda: [])
    told_by.update(nothing, None, True)
    assert e.one.has_pending_push_work()
    gone = list(e.one.take_events())
    assert {type(one) for one in gone} == {BlockRemoved} and sum(len(one.block_hashes) for one in gone) == 25 and not told_by.owners
    assert len({one for event in gone for one in event.block_hashes}) == 25          # a block of two contexts goes with the last


def mounts():
    """/mnt/models is the model whose digest is noted in it."""
    os.makedirs("models", exist_ok=True)
    with open("models/weights", "w") as f:
        f.write("w")
    st = os.stat("models/weights")

    def note(text):
        time.sleep(0.05)
        with open("models/model.evp-digest", "w") as f:
            f.write(text)
        return Engine(model_name=os.path.abspath("models")).ask(request("r", "c", 120))

    right = f"{st.st_size} {st.st_mtime_ns} weights\n"
    assert note("01" * 32 + "\n" + right) == (90, True)
    for wrong in "02" * 32 + "\n" + right, "01" * 32 + "\n", "01" * 32 + "\n" + right.replace("1 ", "2 ", 1), "01" * 32 + "\nx y", "\0\n\n", "":
        assert note(wrong) == (0, False), wrong
    assert note("01" * 32 + "\n" + right) == (90, True)
    time.sleep(0.05)
    with open("models/weights", "w") as f:
        f.write("w")
    os.utime("models/weights", ns=(st.st_atime_ns, st.st_mtime_ns))
    assert Engine(model_name=os.path.abspath("models")).ask(request("r", "c", 120)) == (0, False)


def refuses():
    def refused(what, **more):
        said.clear()
        engine._said.clear()
        assert Engine(**more).ask(request("r", "c", 120)) == (0, False), what
        print(f"{what}: {said[0]}")

    window = FullAttentionSpec()
    window.sliding_window = 512
    refused("window", specs=[window])
    refused("MLA", specs=[MLAAttentionSpec()])
    refused("two kinds", specs=[FullAttentionSpec(), FullAttentionSpec()])
    refused("digest", model_digest="02" * 32)
    refused("name", model_name="org/Large")
    for what, value in ("n_layers", 2), ("rope", {"theta": 500000, "dims": 64, "scaling": "default"}), ("dtype", "bf16"), \
            ("window", 512):
        cache = dict(json.loads(TEXTS["cache"]), windowed=[0], **{what: value})
        old, TEXTS["cache"] = TEXTS["cache"], json.dumps(cache)
        refused(what)
        TEXTS["cache"] = old
    for extra in {"manifest": ""}, {"manifest": "m", "droped": True}:
        try:
            engine.settings(extra, dropped=False)
        except ValueError as error:
            print("settings:", error)


def late():
    """Manifests that are missing, damaged or of another model when the engine starts, and go again."""
    def soon(e, want, *asked, **more):
        start, got = time.monotonic(), None
        while got != want:
            assert got in (None, (0, False), (None, False)) and time.monotonic() < start + 60, (got, said)
            time.sleep(0.05)
            got = e.ask(request(str(time.monotonic()), *asked, **more))
        return time.monotonic() - start

    with open(sys.argv[1]) as f:
        whole = f.read()
    for what, first in ("missing", None), ("damaged", whole[:40]):
        said.clear()
        if first:
            with open(what, "w") as f:
                f.write(first)
        e, other = Engine(manifest=what), Engine(manifest=what, model_name=f"org/{what}")
        assert e.ask(request("1", "c", 120)) == (0, False)
        soon(e, (0, False), "b", 210, cache_salt="tenant")
        time.sleep(1.5)
        assert len(said) == 1, said
        with open("new", "w") as f:
            f.write(whole)
        os.rename("new", what)
        assert soon(e, (90, True), "c", 120) < 10
        soon(e, (60, True), "b", 210, cache_salt="tenant")
        until = time.monotonic() + 60
        while len(said) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        assert other.ask(request("1", "c", 120)) == (0, False)
        for name in "2", "3":
            e.load(request(name, "c", 120), range(1, 9))
            assert e.step() == ({name}, set()) and len(e.layer.slots) == 90
            e.layer.slots.clear()
            if name == "2":
                os.remove(what)
                time.sleep(1.5)
        print(*said, sep="\n")


def tells():
    """What the live plan is told, and what may be stored: nothing behind rows of a lossy variant."""
    S, told, answers = types.SimpleNamespace, [], []

    class Day:
        def __init__(self, *_):
            pass

        def used(self, tokens, found=0, answer=None):
            told.append((len(tokens), found, answer is not None))
            answers.append(answer)

        def lost(self, digest):
            told.append(digest)

    evp.vllm.Day = Day
    changes = {"cache_config": S(block_size=16, enable_prefix_caching=True, cache_dtype="auto"),
               "parallel_config": S(tensor_parallel_size=1, pipeline_parallel_size=1)}
    e = Engine(day="day.jsonl", changes=changes)

    def ends(name, letter, n, blocks, had=0, done=None, **more):
        r = request(name, letter, n, num_computed_tokens=done or n, **more)
        if not had and e.ask(r)[0]:
            e.load(r, blocks)
            assert e.step() == ({name}, set())
        else:
            e.ask(r, had)
            e.one.update_state_after_alloc(r, S(get_block_ids=lambda: [blocks], blocks=[blocks]), 0)
        e.step(grown=[(name, [blocks[-1] + 50])])
        return e.one.request_finished_all_groups(r, (blocks,))[0]

    def let_go(name):
        answers[-1]({})
        assert e.one.has_pending_push_work()
        e.step(wait=False)
        assert not e.one.has_pending_push_work() and e.other.get_finished(set()) == (None, None)
        e.one.update_connector_output(S(finished_sending={name}, kv_connector_worker_meta=None))

    assert ends("1", "z", 60, [1, 2, 3, 4]) and told[-1] == (60, 0, True)
    e.step, step = (lambda **_: setattr(e, "sent", step_only(e))), e.step
    let_go("1")
    assert e.sent == {"1"}
    e.step = step
    assert not ends("2", "b", 210, list(range(10, 24))) and told[-1] == (210, 200, False)     # kivi
    assert not ends("3", "b", 64, [10, 11, 12, 30], had=48) and told[-1] == (64, 0, False)    # behind it, in vLLM's cache
    assert not ends("4", "b", 80, [73, 31, 32, 33, 34], had=16) and told[-1][2] is False      # and where it grew
    assert not ends("5", "z", 60, [1, 2, 3, 4], done=59) and told[-1][0] == 80                # aborted: not told
    assert not ends("6", "z", 60, [1, 2, 3, 4], cache_salt="tenant") and told[-1][0] == 80
    assert ends("7", "c", 120, list(range(40, 48))) and told[-1] == (120, 90, True)           # behind none
    assert ends("8", "z", 64, [10, 11, 12, 30]) and told[-1] == (64, 0, True)                 # its blocks have new rows
    assert not ends("9", "z", 60, [1, 2, 3, 4]) and told[-1] == (60, 0, False)                # two are held
    with damaged():
        assert e.load(request("10", "c", 120), list(range(60, 68))) == 90 and e.step()[1] == set(range(60, 66))
    assert told[-1] == e.one.scheduler.stores.get(None).find(request("", "c", 120).prompt_token_ids).token_digest
    for name in "parallel_config", "cache_config":
        unfit = {**changes, name: S(**{**vars(changes[name]), "tensor_parallel_size": 2, "cache_dtype": "fp8"})}
        e = Engine(day="day.jsonl", changes=unfit)
        assert not ends("1", "z", 60, [1, 2, 3, 4]) and told[-1] == (60, 0, False)


def step_only(e):
    S = types.SimpleNamespace
    meta = e.one.build_connector_meta(S(finished_req_ids=set(), preempted_req_ids=set(),
                                        scheduled_cached_reqs=S(req_ids=[], new_block_ids=[])))
    e.other.bind_connector_metadata(meta)
    e.other.start_load_kv(None)
    return e.other.get_finished(set())[0]


finds(Engine())
tells()
salts(Engine())
writes(Engine())
fails(Engine())
counts()
drops()
fails_apart()
events()
mounts()
refuses()
late()
print("all held")
