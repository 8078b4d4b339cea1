"""evp.lmcache - an L2 adapter of `lmcache server`: LMCache prefetches what is placed as it prefetches its own chunks.

    lmcache server ... --l2-adapter '{"type": "plugin", "module_path": "evp.lmcache", "class_name": "EvpL2Adapter",
        "adapter_params": {"manifest": "manifest.jsonl", "model": "Qwen/Qwen3-8B", "lora": "none"}}'

So it serves every engine that LMCache serves: vLLM (on CUDA), SGLang, TensorRT-LLM, Dynamo. It serves whole chunks of
variants that keep every token, one adapter for one model. A request with the cache salt S finds the contexts of
namespace S alone; one without finds those of `name_space`. Nothing is stored.

    adapter_params  manifest        of evp-load; it may come later
                    model           the engine's --model: LMCache's keys carry it
                    lora            "none": the engine has no LoRA adapters. LMCache's keys do not tell, so without it
                                    nothing is served
                    device          "cuda": vLLM runs there, where LMCache cannot tell (see _misfit)
                    name_space      for requests without cache salt; default: that of the manifest's model
                    model_name, model_digest   of the payloads, if the name is another than `model`
                    chunk_size, hash_algorithm the server's options --chunk-size and --hash-algorithm, if given
"""
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

from lmcache.lmcache_native import Bitmap
from lmcache.v1.distributed.internal_api import L2StoreResult
from lmcache.v1.distributed.l2_adapters.base import L2AdapterInterface
from lmcache.v1.multiprocess.token_hasher import TokenHasher
from lmcache.v1.platform import create_event_notifier, current_device_spec

import evp
from evp import engine, placed

_TESTED = "0.5.6"
_STORE, _LOOKUP, _LOAD = range(3)
_LOADERS = 4
_DEVICE = current_device_spec.backend_name  # where engines are whose memory LMCache maps


def _misfit(cache, shapes, dtypes, settings, heads):
    """Why LMCache's buffers are not for these payloads; None: they are. [2, layers, tokens, width], or as SGLang [1, 2 *
    layers, tokens, width], or as vLLM, K and V of a head beside each other, [1, layers, tokens, 2 * width]; without the 1
    if the engine copies its rows itself."""
    L, n, width = cache["n_layers"], settings.chunk_size, (heads[1] - heads[0]) * cache["head_dim"]
    shape = list(shapes[0]) if len(shapes) == 1 else []
    form = shape[-3:] if shape[:1] == [1] else shape
    if form not in ([2, L, n, width], [2 * L, n, width], [L, n, 2 * width]):
        return (f"LMCache's chunks have the shape {[list(shape) for shape in shapes]}, the payloads' "
                f"[1, {L}, {n}, {2 * width}] or [2, {L}, {n}, {width}]")
    device = settings.device or (_DEVICE if len(shape) == 4 else "a device that LMCache does not tell")
    if form[-1] != width and device != "cuda":
        return (f"vLLM is served on CUDA only, and this engine is on {device}: on a CPU and on ROCm it lays its blocks out "
                f"otherwise than it registers them (if it is on CUDA, set \"device\": \"cuda\")")
    if str(dtypes[0]) not in placed.TYPES:
        return f"the engine's cache has the type {dtypes[0]}: only bfloat16, float16 and float32 are served"
    if cache["dtype"] not in ("f32", placed.TYPES[str(dtypes[0])][0]):
        return f"payloads were computed in {cache['dtype']}, the engine computes in {dtypes[0]}"
    return None


class EvpL2Adapter(L2AdapterInterface):
    def __init__(self, params, l1_memory_desc=None):
        super().__init__()
        if version("lmcache") != _TESTED:
            engine.once(f"tested with LMCache {_TESTED}, this is {version('lmcache')}")
        self.settings = engine.settings(params, model=None, lora=None, device=None, chunk_size=256, hash_algorithm="blake3")
        if not self.settings.model:
            raise ValueError("evp: the setting 'model' is missing: the engine's --model")
        for name, only in (("lora", "none"), ("device", "cuda")):
            if getattr(self.settings, name) not in (None, only):
                raise ValueError(f"evp: the setting '{name}' can only be \"{only}\"")
        if not self.settings.lora:
            engine.once("nothing is served: LMCache does not tell requests with a LoRA adapter from those without: if the "
                        "engine has no LoRA adapters, set \"lora\": \"none\"")
        self.hasher = TokenHasher(self.settings.chunk_size, self.settings.hash_algorithm)
        self.events = [create_event_notifier() for _ in range(3)]
        self.lock, self.task, self.results = threading.Lock(), 0, ({}, {}, {})
        self.workers = [ThreadPoolExecutor(1, "evp-refresh"), ThreadPoolExecutor(1, "evp-lookup"),
                        ThreadPoolExecutor(_LOADERS, "evp-load")]
        self.rows, self.misses = ThreadPoolExecutor(_LOADERS, "evp-rows"), engine.Misses()
        self.spaces = {"": self._space(self.settings.name_space)}
        self.spaces[""].refresh(None)

    def _space(self, name_space):
        return placed.Placed(engine.open(self.settings, name_space), self._hashes, self._model, self.workers[0])

    def _hashes(self, tokens):
        return self.hasher.compute_chunk_hashes(tokens.tolist())

    def _model(self, cache):
        return engine.Model(cache["n_layers"], cache["n_kv_heads"], cache["head_dim"], cache["rope"], cache["dtype"],
                            self.settings.model_name or self.settings.model, self.settings.model_digest)

    # ---- tasks ---------------------------------------------------------------------------------------------

    def _begin(self):
        with self.lock:
            self.task += 1
            return self.task

    def _end(self, kind, task, result):
        with self.lock:
            self.results[kind][task] = result
        self.events[kind].notify()

    def _submit(self, kind, n, work):
        """Runs work(bitmap) on the workers of a kind; whatever happens, the task ends."""
        task, found = self._begin(), Bitmap(n)

        def run():
            try:
                work(found)
            except Exception as error:
                engine.once(f"{type(error).__name__}: {error}")
            self._end(kind, task, found)
        self.workers[kind].submit(run)
        return task

    def _result(self, kind, task):
        with self.lock:
            return self.results[kind].pop(task, None)

    def get_store_event_fd(self):
        return self.events[_STORE].fileno()

    def get_lookup_and_lock_event_fd(self):
        return self.events[_LOOKUP].fileno()

    def get_load_event_fd(self):
        return self.events[_LOAD].fileno()

    # ---- storing: nothing is stored, and that is no failure ------------------------------------------------

    def submit_store_task(self, keys, objects):
        task = self._begin()
        self._end(_STORE, task, L2StoreResult(True, 0))
        return task

    def pop_completed_store_tasks(self):
        with self.lock:
            done = dict(self.results[_STORE])
            self.results[_STORE].clear()
        return done

    # ---- finding -------------------------------------------------------------------------------------------

    def _tenant(self, salt):
        """What requests with a cache salt find. A namespace without contexts is not kept: salts are the clients'."""
        if salt not in self.spaces:
            if not engine.Store(self.settings.manifest, salt).list():
                return None
            self.spaces[salt] = self._space(salt)
        self.spaces[salt].refresh()
        return self.spaces[salt]

    def _context(self, key, space):
        """The context that has the chunk of a key, and the heads of the key's rank; None: there is none."""
        ours = self.settings.lora and key.model_name == self.settings.model and key.object_group_id == 0
        context = space.where.get(key.chunk_hash) if ours and space else None
        if not context:
            return None
        return context, placed.rank_heads(key.kv_rank >> 16 & 255, key.kv_rank >> 24 & 255, context.cache["n_kv_heads"])

    def submit_lookup_and_lock_task(self, keys, group_layout_descs):
        keys, layout = list(keys), group_layout_descs.get(0)

        def look(found):
            spaces, hits, why = {salt: self._tenant(salt) for salt in {key.cache_salt for key in keys}}, 0, None
            for i, key in enumerate(keys):
                at = self._context(key, spaces[key.cache_salt])
                why = at and layout and _misfit(at[0].cache, layout.shapes, layout.dtypes, self.settings, at[1])
                if why:
                    engine.once(why)
                elif at:
                    found.set(i)
                    hits += 1
            if not hits and keys:
                self.misses.note("of another model" if keys[0].model_name != self.settings.model else
                                 "of a cache_salt without contexts" if not spaces[keys[0].cache_salt] else
                                 "whose chunks are laid out otherwise" if why else "of which no beginning is placed")
            self.misses.say()
        return self._submit(_LOOKUP, len(keys), look)

    def query_lookup_and_lock_result(self, task_id):
        return self._result(_LOOKUP, task_id)

    def submit_unlock(self, keys):
        pass

    # ---- loading -------------------------------------------------------------------------------------------

    def _load(self, key, obj):
        """Writes the chunk of a key into LMCache's buffer."""
        space = self.spaces.get(key.cache_salt)
        at = self._context(key, space)
        if not at:
            return False
        (context, heads), n = at, self.settings.chunk_size
        why = _misfit(context.cache, obj.get_shapes(), obj.get_dtypes(), self.settings, heads)
        if why:
            raise ValueError(why)
        n_layers, dim = context.cache["n_layers"], context.cache["head_dim"]
        width = (heads[1] - heads[0]) * dim
        payload, number = space.open(key.chunk_hash)
        split = list(obj.get_shapes()[0])[-1] == width
        strides = (n_layers * n * width, n * width, dim, width) if split else (dim, 2 * n * width, 2 * dim, 2 * width)
        placed.fill(payload, obj.data_ptr, strides, (0, n_layers), heads, (number * n, (number + 1) * n),
                    placed.TYPES[str(obj.get_dtypes()[0])], dim)
        return True

    def submit_load_task(self, keys, objects):
        keys, objects = list(keys), list(objects)

        def one(at):
            try:
                return self._load(*at)
            except (evp.Error, OSError, LookupError, ValueError) as error:
                engine.once(f"a chunk is not served: {error}")
                self.spaces[at[0].cache_salt].forget()
                return False

        def load(good):
            for i, done in enumerate(engine.spread(self.rows, one, zip(keys, objects))):
                if done:
                    good.set(i)
        return self._submit(_LOAD, len(keys), load)

    def query_load_result(self, task_id):
        return self._result(_LOAD, task_id)

    # ---- the adapter itself --------------------------------------------------------------------------------

    def report_status(self):
        contexts = {salt: len(space.contexts) for salt, space in list(self.spaces.items())}
        return {"is_healthy": True, "type": type(self).__name__, "contexts": contexts}

    def close(self):
        for workers in reversed(self.workers):
            workers.shutdown(cancel_futures=True)
        self.rows.shutdown()
        for space in self.spaces.values():
            space.close()
        for event in self.events:
            event.close()
