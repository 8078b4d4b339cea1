"""evp.sglang - a storage backend of SGLang's HiCache: SGLang prefetches what is placed as it prefetches its own pages.

    python -m sglang.launch_server ... --enable-hierarchical-cache --hicache-storage-backend dynamic \\
        --hicache-storage-backend-extra-config '{"backend_name": "evp", "module_path": "evp.sglang",
            "class_name": "EvpHiCache", "interface_v1": 1, "manifest": "manifest.jsonl"}'

It serves whole pages of variants that keep every token, in the host layouts layer_first, page_first, page_first_direct
and page_head; each rank of tensor parallelism reads its own heads. Nothing is stored. SGLang's hashes begin with the
LoRA adapter and the cache salt of a request, so such requests find nothing. The manifest may come later.

    more settings   name_space                 default: that of the manifest's model
                    model_name, model_digest   of the payloads, if the name is another than SGLang's --model-path
"""
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version

from sglang.srt.mem_cache.hicache_storage import HiCacheStorage
from sglang.srt.mem_cache.utils import get_hash_str

import evp
from evp import engine, placed

_TESTED = "0.5.23"
_LOADERS = 4
_SGLANG = ("backend_name", "module_path", "class_name", "interface_v1")  # settings that are not ours
_LAYOUTS = {"layer_first": (2, 1, 3, 2), "page_first": (1, 2, 3, 1),  # dimensions of the buffer: page, layer, head, row
            "page_first_direct": (1, 2, 4, 3), "page_head": (1, 4, 2, 3)}


class EvpHiCache(HiCacheStorage):
    def __init__(self, storage_config, kwargs=None):
        try:
            if version("sglang") != _TESTED:
                engine.once(f"tested with SGLang {_TESTED}, this is {version('sglang')}")
        except PackageNotFoundError:  # a checkout
            pass
        given = {name: value for name, value in (storage_config.extra_config or {}).items() if name not in _SGLANG}
        self.settings, self.config, self.placed = engine.settings(given), storage_config, None
        self.worker, self.rows = ThreadPoolExecutor(1, "evp-refresh"), ThreadPoolExecutor(_LOADERS, "evp-rows")
        self.misses = engine.Misses()

    def register_mem_pool_host(self, mem_pool_host):
        """Hashes what is placed, in pages of the pool's size. ValueError: the pool is of a kind that is not served."""
        pool = mem_pool_host
        self._check(pool)
        super().register_mem_pool_host(pool)
        self.type, self.page = placed.TYPES[str(pool.dtype)], pool.page_size
        self.layers = (pool.start_layer, pool.start_layer + pool.layer_num)
        self.placed = placed.Placed(engine.open(self.settings, self.settings.name_space), self._hashes, self._model,
                                    self.worker)
        self.placed.refresh(None)

    def _check(self, pool):
        config, kind = self.config, type(pool).__name__
        layout, dtype = getattr(pool, "layout", None), str(getattr(pool, "dtype", None))
        if config.is_mla_model or not hasattr(pool, "kv_buffer") or not hasattr(pool, "v_head_dim"):
            raise ValueError(f"evp: the host pool {kind} is not one of keys and values of every head: not served")
        if layout not in _LAYOUTS:
            raise ValueError(f"evp: the layout {layout} is not served (served: {', '.join(_LAYOUTS)})")
        if dtype not in placed.TYPES or pool.head_dim != pool.v_head_dim:
            raise ValueError(f"evp: a cache of {dtype}, heads of {pool.head_dim} and {pool.v_head_dim}: not served")
        if config.attn_cp_size > 1 or pool.layer_num != pool.end_layer - pool.start_layer:
            raise ValueError("evp: context parallelism, and draft layers in the pool, are not served")

    def _hashes(self, tokens):
        """32 bytes for each whole page: half of what SGLang's digits would take."""
        tokens = tokens[:len(tokens) // self.page * self.page]
        digits = get_hash_str(tokens, None, page_size=self.page) if tokens else []
        return [bytes.fromhex(page) for page in digits]

    def _model(self, cache):
        """The pool knows its rank's heads, and with pipeline parallelism its stage's layers."""
        pool, config, settings = self.mem_pool_host, self.config, self.settings
        first, end = placed.rank_heads(config.tp_rank, config.tp_size, cache["n_kv_heads"])
        n_heads = cache["n_kv_heads"] if end - first == pool.head_num else pool.head_num * config.tp_size
        n_layers = max(cache["n_layers"], self.layers[1]) if config.pp_size > 1 else self.layers[1]
        return engine.Model(n_layers, n_heads, pool.head_dim, cache["rope"], self.type[0],
                            settings.model_name or config.model_name, settings.model_digest)

    # ---- pages ---------------------------------------------------------------------------------------------

    def exists(self, key):
        return self.batch_exists([key]) == 1

    def batch_exists(self, keys, extra_info=None):
        self.placed.refresh()
        n = next((i for i, key in enumerate(keys) if bytes.fromhex(key) not in self.placed.where), len(keys))
        if n == 0:
            self.misses.note("of which no beginning is placed")
        self.misses.say()
        return n

    def batch_get_v1(self, keys, host_indices, extra_info=None):
        def one(at):
            try:
                self._load(bytes.fromhex(at[0]), at[1])
                return True
            except (evp.Error, OSError, LookupError, ValueError) as error:
                engine.once(f"a page is not served: {error}")
                self.placed.forget()
                return False
        return engine.spread(self.rows, one, zip(keys, host_indices[::self.page].tolist()))

    def _load(self, key, index):
        """Writes a page to the host pool, which has it at token number `index`."""
        pool = self.mem_pool_host
        page, layer, head, row = _LAYOUTS[pool.layout]
        stride = pool.kv_buffer.stride()
        payload, number = self.placed.open(key)
        heads = placed.rank_heads(self.config.tp_rank, self.config.tp_size, payload.shape.n_heads)
        at = index if page == row else index // self.page
        placed.fill(payload, pool.kv_buffer.data_ptr() + at * stride[page] * self.type[1],
                    (stride[0], stride[layer], stride[head], stride[row]), self.layers, heads,
                    (number * self.page, (number + 1) * self.page), self.type, pool.head_dim)

    # ---- what SGLang's backends must have: without interface_v1 nothing is found ---------------------------

    def batch_set_v1(self, keys, host_indices, extra_info=None):
        return [True] * len(keys)

    def get(self, key, target_location=None, target_sizes=None):
        engine.once('set "interface_v1": 1 in --hicache-storage-backend-extra-config')
        return None

    def batch_get(self, keys, target_locations=None, target_sizes=None):
        return [self.get(key) for key in keys]

    def set(self, key, value=None, target_location=None, target_sizes=None):
        return True

    def batch_set(self, keys, values=None, target_locations=None, target_sizes=None):
        return True

    def close(self):
        self.worker.shutdown(cancel_futures=True)
        self.rows.shutdown()
        if self.placed:
            self.placed.close()
