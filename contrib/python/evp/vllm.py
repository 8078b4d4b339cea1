"""evp.vllm - a KV connector for vLLM that reads placed contexts, and, if it is told to, stores what vLLM has computed.

    vllm serve MODEL --kv-transfer-config '{"kv_connector": "EvpConnector", "kv_connector_module_path": "evp.vllm",
        "kv_role": "kv_consumer", "kv_load_failure_policy": "recompute",
        "kv_connector_extra_config": {"manifest": "/srv/evp/manifest.jsonl"}}'

The longest placed prefix of a prompt is loaded while other requests go on, whole or from where vLLM's own prefix cache
ends. What fails to load is computed (`recompute`; vLLM's default policy fails the request). Rows are written by the
attention backend itself, so cache types, layouts, block sizes and tensor parallelism are vLLM's. A new load is seen
within a second. /metrics counts the tokens: vllm:external_prefix_cache_queries_total and ..._hits_total; and prompts, by
whether they loaded something or why not: vllm:evp_prompts_total. Once an hour the log says why prompts loaded nothing;
`evp-show --find` explains a single one.

Settings, in kv_connector_extra_config:
    manifest        the manifest that evp-load carried out; it may come later
    model_name      the payloads' name for the model, if it is not vLLM's
    model_digest    the payloads' digest of the model: compared instead of the name
    name_space      as in evp-load --namespace, of requests without cache_salt
    metrics         a file NAME-%p.prom for node_exporter's textfile collector, written once a minute; %p: the process
    dropped         true: serve variants with dropped tokens too, see evp.vllm_dropped
    day             a file: the live plan is told of uses, and what it wants is stored, see evp.day; "kv_role": "kv_both"

With `day` a thread stores contexts under none and the quantisers, from the pages of finished requests, which vLLM keeps so
long, of two at most. Only what was computed with the whole cache of all tokens before it is stored: not behind rows of a
lossy variant, which vLLM's prefix cache may hold too. Requests with cache_salt are not told of. With tensor or pipeline
parallelism, or a cache of another number format than the model, uses are told and nothing is stored.

A request with cache_salt S finds what was loaded with --namespace S and nothing else, one without it nothing of theirs.
Requests with a LoRA adapter, images, prompt embeddings, or for pooling are left to vLLM; so are models with
sliding windows, MLA, or more than one kind of attention, and payloads of another model: the log says so once.

vLLM's prefix cache keeps loaded rows under the hashes of their tokens: prompts that share only the beginning get the
rows of a quantised variant too. If that is not wanted, use --no-enable-prefix-caching. Requests that load dropped tokens stay
out of it, by a cache_salt of their own, which KV events show too; they load unless it has the context itself.
With --kv-events-config routers are told what is placed, see evp.vllm_events.

In a MultiConnector put this connector first: vLLM takes the first one that has tokens. Give kv_load_failure_policy to
both.
"""
import queue
import secrets
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import torch
from vllm import __version__ as vllm_version
from vllm.distributed import get_tensor_model_parallel_rank
from vllm.distributed.kv_transfer.kv_connector.v1.base import (KVConnectorBase_V1, KVConnectorMetadata, KVConnectorRole,
                                                               KVConnectorWorkerMetadata, SupportsHMA)
from vllm.distributed.kv_transfer.kv_connector.v1.metrics import KVConnectorPromMetrics, KVConnectorStats

import evp
from evp import engine, vllm_dropped
from evp.day import Day
from evp.vllm_events import Events

TESTED = "0.32"  # version of vLLM
LOADERS = 4      # loads at once, and threads of a worker that share the layers of them all
SWITCH_S = 1e-4  # while something is loaded, instead of Python's 5 ms
STORES = 64      # namespaces that are kept open
LATER_S = 10     # until a salt without contexts is looked up again
UNKNOWN = 4096   # such salts that are remembered
HOLD = 2         # finished requests whose pages are kept to be stored
TYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}


@dataclass
class Load:
    request: str
    name_space: str  # None: the default
    prefix: evp.Prefix
    first: int       # tokens that vLLM has already
    end: int         # tokens it shall have
    blocks: list     # ids of the request's blocks
    block_size: int

    def failing(self):
        """The blocks to compute if this fails."""
        return self.blocks[self.first // self.block_size:-(-self.end // self.block_size)]


@dataclass
class Save:
    request: str
    said: dict       # what evp.day answered; {}: nothing is stored
    tokens: list     # of the prompt
    blocks: list
    texts: dict      # what a payload says of the model


@dataclass
class Meta(KVConnectorMetadata):
    loads: list = field(default_factory=list)
    saves: list = field(default_factory=list)
    gone: set = field(default_factory=set)  # requests that have finished or lost their blocks


@dataclass
class Told(KVConnectorWorkerMetadata):
    no_drop: str     # why this worker cannot serve variants with dropped tokens

    def aggregate(self, other):
        return self


class Stats(KVConnectorStats):
    """Finished prompts, by what became of them, since vLLM asked last."""

    def reset(self):
        self.data = {}

    def is_empty(self):
        return not self.data

    def note(self, result, n=1):
        self.data[result] = self.data.get(result, 0) + n

    def aggregate(self, other):
        for result, n in other.data.items():
            self.note(result, n)
        return self

    def reduce(self):
        return {f"prompts {result}": n for result, n in self.data.items()}


class Metrics(KVConnectorPromMetrics):
    def __init__(self, config, types, labels, values):
        super().__init__(config, types, labels, values)
        self.prompts = self._counter_cls(name="vllm:evp_prompts", labelnames=[*labels, "result"],
                                         documentation="Finished prompts that loaded a placed context, or why not.")

    def observe(self, transfer_stats_data, engine_idx=0):
        for result, n in transfer_stats_data.items():
            self.prompts.labels(*self.per_engine_labelvalues[engine_idx], result).inc(n)


class Stores:
    """The open store of each namespace. Opening and refreshing wait for tiers; looking one up does not."""

    def __init__(self, settings):
        self.settings, self.lock = settings, threading.Lock()
        self.at = {None: self._open(settings.name_space)}

    def _open(self, name_space):
        return engine.open(self.settings, name_space)

    def _keep(self, name_space, store):
        with self.lock:
            self.at[name_space] = store
            if len(self.at) > STORES:  # whoever still uses it keeps it open
                del self.at[next(name for name in self.at if name is not None)]

    def get(self, name_space):
        store = self.at.get(name_space)
        if store is None:
            store = self._open(name_space)
            self._keep(name_space, store)
        return store

    def look(self, salt):
        """Opens the namespace of a salt, which clients choose, and keeps it if it has contexts; returns whether it has."""
        store = self._open(salt)
        if store.list():
            self._keep(salt, store)
            return True
        store.close()
        return False

    def all(self):
        with self.lock:
            return list(self.at.values())


# ---- what vLLM runs -----------------------------------------------------------------------------------------------


def engine_model(config, settings):
    """vLLM's model, for engine.difference()."""
    model = config.model_config
    text, head_dim = model.hf_text_config, model.get_head_size()
    return engine.Model(text.num_hidden_layers, model.get_total_num_kv_heads(), head_dim,
                        engine.hf_rope(text, head_dim), TYPES.get(model.dtype), settings.model_name or model.model,
                        settings.model_digest)


def unfit(kv_cache_config):
    """Why this cache cannot hold payloads; None: it can."""
    specs = [group.kv_cache_spec for group in kv_cache_config.kv_cache_groups]
    if len(specs) != 1 or type(specs[0]).__name__ != "FullAttentionSpec":
        return "the model has other layers than full attention, or several kinds of them"
    if getattr(specs[0], "sliding_window", None) or getattr(specs[0], "attention_chunk_size", None):
        return "the model's attention has a window"
    return None


def unable_to_store(config):
    """Why what vLLM computes cannot be stored; None: it can."""
    parallel = config.parallel_config
    if parallel.tensor_parallel_size * parallel.pipeline_parallel_size > 1:
        return "each worker has a part of it"
    if config.cache_config.cache_dtype not in ("auto", str(config.model_config.dtype).rpartition(".")[2]):
        return "the cache has another number format than the model"
    return None


def unable_to_drop(config):
    """Why variants with dropped tokens cannot be served; None: they can."""
    parallel = config.parallel_config
    if not vllm_dropped.registered():
        return "evp's plugin for vLLM is not loaded: install evp with pip, and look at VLLM_PLUGINS"
    if config.speculative_config is not None:
        return "speculative decoding does not know of dropped tokens"
    if max(getattr(parallel, name, 1) for name in ("decode_context_parallel_size", "prefill_context_parallel_size")) > 1:
        return "with context parallelism a request's length is counted elsewhere"
    return None


# ---- the scheduler's half -----------------------------------------------------------------------------------------


class Scheduler:
    """Finds prompts. Nothing here waits for a tier: a thread opens namespaces and reads what has changed."""

    def __init__(self, config, kv_cache_config, settings):
        self.block_size, self.stores = config.cache_config.block_size, Stores(settings)
        self.found = {}    # request -> (changes seen, namespace, Prefix or None) of waiting requests
        self.tried = {}    # request -> its preemptions when it was loaded: what failed is not tried again
        self.pending = []  # loads for the next step
        self.unheld = set()  # requests whose longest placed prefix is in a form that cannot be loaded
        self.pool, self.held, self.let_go = None, {}, []  # blocks marked in vllm_dropped, and those of the step before
        self.salts = {}    # request with dropped tokens -> its cache_salt, which _rehash() replaced
        self.changes, self.opening, self.wake = 0, {}, threading.Event()
        self.misses, self.stats = engine.Misses(), Stats()
        self.unknown = {}  # salt without contexts -> when it was looked up
        self.day = Day(settings.day, settings.manifest, settings.name_space) if settings.day else None
        self.computed, self.pure, self.loaded = {}, {}, {}  # request -> tokens vLLM had; none of them lossy; placed tokens
        self.lossy = set()  # blocks with rows of a lossy variant, or computed behind them
        self.texts, self.saving, self.asked, self.answers = None, {}, set(), queue.SimpleQueue()
        self.no_store = unable_to_store(config) if settings.day else "the setting 'day' is missing"
        if settings.day and self.no_store:
            engine.once(f"what is computed is not stored: {self.no_store}")
        self.model, self.serves = engine_model(config, settings), True  # model: until a payload was compared with it
        self._judge(unfit(kv_cache_config))
        self.no_drop = None if settings.dropped else "the setting 'dropped' is not true"
        if settings.dropped:
            self.cannot_drop(unable_to_drop(config))
        told = config.kv_events_config
        self.events = Events(config) if told and told.enable_kv_cache_events else None
        if self.serves:
            threading.Thread(target=self._watch, name="evp-watch", daemon=True).start()

    def cannot_drop(self, reason):
        if reason and not self.no_drop:
            engine.once(f"variants with dropped tokens are not loaded: {reason}")
            self.no_drop = reason

    def _judge(self, reason=None):
        """Serves nothing, for a reason, or because what is placed is of another model: one payload tells."""
        store = self.stores.get(None)
        for prefix in store.list()[:1] if self.model and not reason else ():
            try:
                with store.payload(prefix) as payload:
                    reason, ours, self.model = engine.difference(payload, self.model), self.model, None
                    self.texts = None if reason else engine.texts(payload, ours)
            except evp.Error as error:
                engine.once(str(error))
        if reason:
            self.serves = False
            engine.once(f"nothing is loaded: {reason}")

    def _watch(self):
        while True:
            self.wake.wait(1)
            self.wake.clear()
            for salt in list(self.opening):
                self._look(salt)
            changes = sum(store.refresh() for store in self.stores.all())
            if changes:
                self._judge()
            self.changes += changes
            if self.events and self.serves:
                self.events.update(self.stores.get(None), self._usable, changes > 0)
            self.misses.say()

    def _look(self, salt):
        try:
            known = self.stores.look(salt)
        except (ValueError, evp.Error):  # it is no text, or cannot be read
            known = False
        if known:
            self.changes += 1
        else:
            if len(self.unknown) >= UNKNOWN:
                self.unknown.clear()
            self.unknown[salt] = time.monotonic()
        del self.opening[salt]

    def _store(self, salt):
        """The store of a salt; None: it is being opened; False: there is none."""
        store = self.stores.at.get(salt)
        if store:
            return store
        if "\0" in salt or salt not in self.opening and len(self.opening) >= STORES:
            return False
        if time.monotonic() - self.unknown.get(salt, -LATER_S) < LATER_S:
            return False
        asked = self.opening.setdefault(salt, time.monotonic())
        self.wake.set()
        return None if time.monotonic() - asked < 1 else False

    def _usable(self, config):
        if engine.keeps_all(config):
            return True
        reason = self.no_drop
        if not reason and any(name in config for name in ("pyramidkv", "adakv", "chunkkv", "kvzip", "kvzap", "impress")):
            reason = "its layers or heads keep different numbers of tokens"
        if reason:
            engine.once(f"contexts placed as {config} are not loaded: {reason}")
        return not reason

    def _find(self, store, request):
        """The longest prefix that can be loaded: a Prefix or None."""
        tokens = request.prompt_token_ids
        try:
            found = store.find(tokens)
            if found and not self._usable(found.config):
                self.unheld.add(request.request_id)
            while found and not (self._usable(found.config) and self._end(found, request)):
                found = store.find(tokens[:found.n_tokens - 1])
            return found
        except evp.Error as error:
            engine.once(str(error))
            return None

    @staticmethod
    def _end(found, request):
        """How many tokens the request has after loading: at least one must be left to compute."""
        if engine.keeps_all(found.config):
            return min(found.n_tokens, request.num_tokens - 1)
        return found.n_tokens if found.n_tokens < request.num_tokens else 0  # rows do not say which token they are

    def _salt(self, request):
        return self.salts.get(request.request_id, request.cache_salt)

    @staticmethod
    def _rehash(request, salt):
        request.cache_salt = salt
        request.block_hashes.clear()
        request.update_block_hashes()

    def _apart(self, request):
        """Gives a request block hashes that no other has: its blocks hold fewer rows than tokens, and nobody else may find
        them in vLLM's prefix cache; nor may it, after a preemption, for which it gets new ones."""
        self.salts.setdefault(request.request_id, request.cache_salt)
        self._rehash(request, secrets.token_hex(16))

    def matched(self, request, computed):
        """As get_num_new_matched_tokens(). (None, False): vLLM asks again in the next step."""
        apart = request.request_id in self.salts
        if apart and computed:
            self._apart(request)
            return None, False
        if apart and self.tried.get(request.request_id) == request.num_preemptions:  # all of it is computed
            self._rehash(request, self.salts.pop(request.request_id))
        if not self.serves or request.lora_request or request.mm_features or request.prompt_token_ids is None \
                or getattr(request, "prompt_embeds", None) is not None or request.pooling_params \
                or self.tried.get(request.request_id) == request.num_preemptions:
            return 0, False
        store = self._store(self._salt(request))
        if store is None:
            return None, False
        self.computed[request.request_id] = computed
        seen, _, prefix = self.found.get(request.request_id, (-1, None, None))
        if seen != self.changes:
            seen, prefix = self.changes, self._find(store, request) if store else None
            self.found[request.request_id] = seen, self._salt(request), prefix
        n = self._end(prefix, request) - computed if prefix else 0
        if n > 0 and not engine.keeps_all(prefix.config):
            if n < self.block_size:  # vLLM has the context itself
                return 0, False
            if computed or not apart:
                self._apart(request)
            if computed:
                return None, False
        return max(0, n), n > 0

    def _mark(self, request, blocks):
        """Of a request's new blocks."""
        change = self.lossy.difference_update if self.pure.get(request) else self.lossy.update
        change(blocks)

    def allocated(self, request, blocks, n):
        computed = self.computed.pop(request.request_id, None)
        if self.day and computed is not None:  # else it comes back from its load
            had, ids = computed // self.block_size, blocks.get_block_ids()[0]
            lossy = n > 0 and self.found[request.request_id][2].config != "none"
            self.pure[request.request_id] = not lossy and self.lossy.isdisjoint(ids[:had])
            self._mark(request.request_id, ids[had:])
        if n <= 0:
            return
        _, name_space, prefix = self.found.pop(request.request_id)
        self.loaded[request.request_id] = prefix.n_tokens
        end = self._end(prefix, request)
        self.tried[request.request_id] = request.num_preemptions
        self.pending.append(Load(request.request_id, name_space, prefix, end - n, end, blocks.get_block_ids()[0],
                                 self.block_size))
        if not engine.keeps_all(prefix.config):  # nobody gets this block before the workers have taken its mark away
            self.held[request.request_id] = blocks.blocks[0][0]
            self.pool.touch([blocks.blocks[0][0]])

    def step(self, output):
        if self.let_go:
            self.pool.free_blocks(self.let_go)
        gone = set(output.finished_req_ids) | set(output.preempted_req_ids or ())
        self.let_go = [self.held.pop(request) for request in gone if request in self.held]
        meta, self.pending = Meta(self.pending, [], gone), []
        if self.day:
            for request, new in zip(output.scheduled_cached_reqs.req_ids, output.scheduled_cached_reqs.new_block_ids):
                self._mark(request, new[0] if new else ())
            while not self.answers.empty():
                request, said = self.answers.get()
                self.asked.discard(request)
                meta.saves.append(Save(request, said, *self.saving[request], self.texts))
        return meta

    def _tell(self, request, blocks, found):
        """Tells of a use; returns whether its blocks are kept, until an answer says what of it to store."""
        pure, tokens = self.pure.pop(request.request_id, False), request.prompt_token_ids
        if not self.day or not self.serves or self._salt(request) or request.lora_request or request.mm_features \
                or tokens is None or request.pooling_params or request.num_computed_tokens < len(tokens):
            return False
        if self.no_store or not pure or not self.texts or len(self.saving) >= HOLD:
            self.day.used(tokens, found)
            return False
        self.saving[request.request_id] = tokens, blocks
        self.asked.add(request.request_id)
        self.day.used(tokens, found, lambda said: self.answers.put((request.request_id, said)))
        return True

    def finished(self, request, blocks):
        seen, _, prefix = self.found.pop(request.request_id, (-1, None, None))
        unheld = request.request_id in self.unheld
        self.unheld.discard(request.request_id)
        self.computed.pop(request.request_id, None)
        found = self.loaded.pop(request.request_id, prefix.n_tokens if prefix else 0)
        if self.tried.pop(request.request_id, None) is None:
            why = ("with a LoRA adapter" if request.lora_request else
                   "with images or the like" if request.mm_features else
                   "of a cache_salt without anything like it" if self._salt(request) and not prefix else
                   "that vLLM's own cache had" if prefix else
                   "placed in a form that this engine cannot hold" if unheld else
                   "of which no beginning is placed" if seen >= 0 else "that are not looked up")
            self.misses.note(why)
            self.stats.note(why)
        else:
            self.stats.note("that loaded a context")
        kept = self._tell(request, blocks, found)
        if self.salts.pop(request.request_id, self) is not self:
            self.pool.evict_blocks(set(blocks))  # so that vLLM takes these first
        return kept


# ---- the worker's half --------------------------------------------------------------------------------------------


class Worker:
    """Threads read payloads and write rows into pages that wait for them, those of one request layer by layer together.
    Results are taken by the engine's thread."""

    def __init__(self, config, kv_cache_config, settings):
        self.config, self.kv_cache_config, self.settings = config, kv_cache_config, settings
        self.model = engine_model(config, settings)
        self.layers, self.stores = [], None
        self.todo, self.results = queue.SimpleQueue(), queue.SimpleQueue()
        self.loading, self.gone, self.failed = set(), set(), set()
        self.to_save, self.saved, self.at, self.day = queue.SimpleQueue(), queue.SimpleQueue(), None, None
        self.switch_s, self.told = sys.getswitchinterval(), None

    def register(self, caches):
        context = self.config.compilation_config.static_forward_context
        self.names = set(caches)
        self.layers = [(self._index(name), context[name]) for name in caches]
        self.device = next(iter(caches.values())).device
        self.stream = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None
        vllm_dropped.prepare(self.kv_cache_config.num_blocks, self.device)
        if self.settings.dropped and vllm_dropped.registered() and not vllm_dropped.covers(self.names):
            self.told = Told("attention backend %s does not know of dropped tokens, %s do" % (
                self.layers[0][1].attn_backend.get_name(), ", ".join(vllm_dropped.BACKENDS)))
        self.stores = Stores(self.settings)
        self.rows = ThreadPoolExecutor(LOADERS, "evp-rows", self.stream and (lambda: torch.cuda.set_stream(self.stream)))
        for _ in range(LOADERS):
            threading.Thread(target=self._work, name="evp-load", daemon=True).start()
        if self.settings.day:
            self.day = Day(self.settings.day, self.settings.manifest, self.settings.name_space)
            threading.Thread(target=self._save_all, name="evp-save", daemon=True).start()

    @staticmethod
    def _index(name):
        """model.layers.7.self_attn.attn -> 7"""
        return next(int(part) for part in name.split(".") if part.isdigit())

    def start(self, loads, saves):
        """A loader takes the interpreter's lock some hundred times; it gets it soon while the engine only waits for it."""
        if loads:
            sys.setswitchinterval(SWITCH_S)
        written = torch.cuda.current_stream(self.device).record_event() if (loads or saves) and self.stream else None
        for save in saves:
            (self.to_save if save.said else self.saved).put((save, written))
        for load in loads:
            self.loading.add(load.request)
            self.todo.put((load, written))

    def _work(self):
        while True:
            load, written = self.todo.get()
            dropped = None
            try:
                if self.stream:
                    with torch.cuda.stream(self.stream):
                        self.stream.wait_event(written)
                        dropped = self._load(load)
                        self.stream.synchronize()
                else:
                    dropped = self._load(load)
            except Exception as error:  # whatever it is, the engine computes these tokens
                engine.once(f"{load.prefix.n_tokens} tokens on tier '{load.prefix.tier}' are computed, not loaded: {error}")
                if self.day and not load.name_space and getattr(error, "code", 0) in (evp.GONE, evp.DAMAGED):
                    self.day.lost(load.prefix.token_digest)
            self.results.put((load, dropped))

    def _load(self, load):
        """Returns how many tokens the variant has dropped."""
        store = self.stores.get(load.name_space)
        store.refresh()
        with store.payload(load.prefix) as payload:
            reason = engine.difference(payload, self.model) or self._unfit()
            if reason:
                raise ValueError(reason)
            shape, rows = payload.shape, (load.first, load.end)
            if shape.n_tokens != load.prefix.n_tokens or shape.n_rows is None:
                raise ValueError("its layers or heads keep different numbers of tokens")
            if shape.n_rows < shape.n_tokens:
                rows = 0, shape.n_rows
                if not vllm_dropped.covers(self.names):
                    raise ValueError("the attention backend in use does not know of dropped tokens")
            at = torch.arange(*rows)
            slots = torch.tensor(load.blocks)[at // load.block_size] * load.block_size + at % load.block_size
            slots = slots.to(self.device)
            engine.spread(self.rows, lambda layer: self._write(payload, *layer, rows, slots), self.layers)
            return shape.n_tokens - shape.n_rows

    def _unfit(self):
        indices = sorted(index for index, _ in self.layers)
        if indices != list(range(indices[0], indices[0] + len(indices))) or indices[-1] >= self.model.n_layers:
            return "vLLM has other layers than the model, such as a drafter's"
        if not all(hasattr(layer.impl, "do_kv_cache_update") for _, layer in self.layers):
            return "the attention backend in use writes rows only during the forward pass"
        return None

    def _write(self, payload, index, layer, rows, slots):
        """Rows of this rank's heads into their slots, by the engine's own kernel."""
        heads = layer.impl.num_kv_heads
        first = get_tensor_model_parallel_rank() * self.model.n_kv_heads // self.config.parallel_config.tensor_parallel_size
        key, value = (torch.empty((len(slots), heads, self.model.head_dim), dtype=self.config.model_config.dtype,
                                  pin_memory=self.stream is not None) for _ in range(2))
        for what, to in ("k", key), ("v", value):
            payload.rows(index, what, (to.data_ptr(), to.numel() * to.element_size()), heads=(first, first + heads),
                         rows=rows, type=self.model.dtype, strides=(self.model.head_dim, heads * self.model.head_dim, 1))
        layer.impl.do_kv_cache_update(layer, key.to(self.device, non_blocking=True),
                                      value.to(self.device, non_blocking=True), layer.kv_cache, slots)

    def _save_all(self):
        while True:
            save, written = self.to_save.get()
            try:
                if written:
                    written.synchronize()
                self._save(save.said, save)
            except Exception as error:  # whatever it is, the context is not stored
                engine.once(f"a context is not stored: {error}")
                self.day.lost(save.said["id"])
            self.saved.put((save, None))

    def _save(self, said, save):
        if self.at is None:
            self.at = self._places(self.layers[0][1])
        n, rows, texts = said["n"], [], save.texts
        blocks = torch.tensor(save.blocks[:-(-n // self.config.cache_config.block_size)], device=self.device)
        for _, layer in sorted(self.layers, key=lambda of: of[0]):
            pages = layer.kv_cache[blocks].flatten(1)[:, self.at.flatten()].view(len(blocks), *self.at.shape)
            rows += [pages[:, side].flatten(0, 1)[:n].cpu().contiguous() for side in range(2)]
        heads, dim = self.at.shape[2:]
        payload = evp.encode(said["config"], save.tokens[:n], [row.data_ptr() for row in rows], (len(self.layers), heads, dim),
                             self.model.dtype, (dim, heads * dim), **texts)
        self.stores.get(None).store.put(said["id"], said["tier"], payload, chunks=said["config"] == "none")

    def _places(self, layer):
        """Where the engine's own kernel puts the numbers of a block: (keys and values, tokens, heads, head_dim), found by
        letting it write, byte by byte, a number that says where it comes from."""
        size, heads, dim = self.config.cache_config.block_size, layer.impl.num_kv_heads, self.model.head_dim
        block = torch.zeros_like(layer.kv_cache[:1])
        number = torch.arange(2 * size * heads * dim).view(2, size, heads, dim)
        found = torch.zeros(block.numel(), dtype=torch.long)
        for shift in range(0, 32, 8):
            key, value = (number >> shift & 255).to(self.device, self.config.model_config.dtype)
            layer.impl.do_kv_cache_update(layer, key, value, block, torch.arange(size, device=self.device))
            found += block.flatten().long().cpu() << shift
        at = found.argsort()
        if not torch.equal(found[at], number.flatten()):
            raise ValueError("vLLM's pages are not what its attention backend writes")
        return at.view(number.shape).to(self.device)

    def forget(self, gone):
        """Before the step's attention metadata are made."""
        vllm_dropped.unmark(gone)
        self.gone |= gone & self.loading

    def finished(self):
        done = set()
        while not self.results.empty():
            load, dropped = self.results.get()
            done.add(load.request)
            if dropped is None:
                self.failed.update(load.failing())
            elif dropped and load.request not in self.gone:
                vllm_dropped.mark(load.request, load.blocks[0], dropped)
        self.loading -= done
        self.gone -= done
        if done and not self.loading:
            sys.setswitchinterval(self.switch_s)
        sent = set()
        while not self.saved.empty():
            sent.add(self.saved.get()[0].request)
        return sent or None, done or None


# ---- what vLLM calls ----------------------------------------------------------------------------------------------


class EvpConnector(KVConnectorBase_V1, SupportsHMA):
    def __init__(self, vllm_config, role, kv_cache_config=None):
        super().__init__(vllm_config=vllm_config, role=role, kv_cache_config=kv_cache_config)
        given = self._kv_transfer_config
        settings = engine.settings(given.kv_connector_extra_config or {}, dropped=False, day=None)
        if not vllm_version.startswith(TESTED):
            engine.once(f"tested with vLLM {TESTED}, this is {vllm_version}")
        if given.kv_load_failure_policy != "recompute":
            engine.once("kv_load_failure_policy is not 'recompute': a request whose load fails fails too")
        self.scheduler = self.worker = None
        if role == KVConnectorRole.SCHEDULER:
            self.scheduler = Scheduler(vllm_config, kv_cache_config, settings)
        else:
            self.worker = Worker(vllm_config, kv_cache_config, settings)

    # in the scheduler
    def bind_gpu_block_pool(self, gpu_block_pool):
        self.scheduler.pool = gpu_block_pool

    def get_num_new_matched_tokens(self, request, num_computed_tokens):
        return self.scheduler.matched(request, num_computed_tokens)

    def update_state_after_alloc(self, request, blocks, num_external_tokens):
        self.scheduler.allocated(request, blocks, num_external_tokens)

    def build_connector_meta(self, scheduler_output):
        return self.scheduler.step(scheduler_output)

    def request_finished(self, request, block_ids):
        return self.scheduler.finished(request, block_ids), None

    def request_finished_all_groups(self, request, block_ids):
        return self.request_finished(request, block_ids[0] if block_ids else [])

    def update_connector_output(self, connector_output):
        if connector_output.kv_connector_worker_meta:
            self.scheduler.cannot_drop(connector_output.kv_connector_worker_meta.no_drop)
        for request in connector_output.finished_sending or ():
            self.scheduler.saving.pop(request, None)

    def get_kv_connector_stats(self):
        if not self.scheduler or self.scheduler.stats.is_empty():
            return None
        said, self.scheduler.stats = self.scheduler.stats, Stats()
        return said

    @classmethod
    def build_kv_connector_stats(cls, data=None):
        return Stats(data or {})

    @classmethod
    def build_prom_metrics(cls, vllm_config, metric_types, labelnames, per_engine_labelvalues):
        return Metrics(vllm_config, metric_types, labelnames, per_engine_labelvalues)

    def take_events(self):
        return self.scheduler.events.take() if self.scheduler.events else ()

    def has_pending_push_work(self):  # an engine without requests goes on, for an answer, or to publish
        return bool(self.scheduler.asked or self.scheduler.events and self.scheduler.events.events)

    # in each worker
    def register_kv_caches(self, kv_caches):
        self.worker.register(kv_caches)

    def handle_preemptions(self, kv_connector_metadata):
        self.worker.forget(kv_connector_metadata.gone)

    def start_load_kv(self, forward_context, **kwargs):
        meta = self._get_connector_metadata()
        self.worker.start(meta.loads, meta.saves)

    def get_finished(self, finished_req_ids):
        return self.worker.finished()

    def build_connector_worker_meta(self):
        told, self.worker.told = self.worker.told, None
        return told

    def get_block_ids_with_load_errors(self):
        failed, self.worker.failed = self.worker.failed, set()
        return failed

    def wait_for_layer_load(self, layer_name):
        pass

    def save_kv_layer(self, layer_name, kv_layer, attn_metadata, **kwargs):
        pass

    def wait_for_save(self):
        pass
