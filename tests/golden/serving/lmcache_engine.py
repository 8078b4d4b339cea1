"""lmcache_engine.py - `lmcache server` with the plugin evp.lmcache, and an engine's side for the parts of this oracle:
LMCache's own classes over pages that the vLLM beside it lays out, in its GPU's layouts, and reads with its GPU's code; the
same for SGLang."""
import itertools, json, os, socket, subprocess, sys, tempfile, threading, time, urllib.error, urllib.request
from types import SimpleNamespace

import torch, zmq
from lmcache.integration.vllm.kv_cache_groups import create_engine_group_infos_from_vllm
from lmcache.integration.vllm.utils import translate_vllm_kv_cache_layout
from lmcache.utils import EngineType
from lmcache.v1.multiprocess.custom_types import IPCCacheServerKey
from lmcache.v1.multiprocess.transfer_context import create_transfer_context
from lmcache.v1.multiprocess.transport.factory import RequestClientFactory
from vllm.v1.attention.backends import flash_attn, triton_attn
from vllm.v1.kv_cache_interface import (FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec, KVCacheTensor,
                                        compute_layout_strides, create_kv_cache_views)
from vllm.v1.kv_cache_layout import KVCacheLayout

MODEL, CHUNK, BLOCK, LAYERS, HEADS, DIM = "Org/smol", 256, 16, 30, 3, 64
MODES = ("lmcache_driven", "engine_driven")  # who copies rows; on GPUs LMCache does


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


_instances, _kernel = itertools.count(), threading.Lock()


class Server:
    """`lmcache server` with one L2 adapter, ours."""

    def __init__(self, manifest, digest, **params):
        self.port, self.http_port = free_ports(2)
        spec = {"type": "plugin", "module_path": "evp.lmcache", "class_name": "EvpL2Adapter",
                "adapter_params": {"manifest": manifest, "model": MODEL, "model_digest": digest, "lora": "none",
                                   "device": "cuda", **params}}
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            ["lmcache", "server", "--host", "127.0.0.1", "--port", str(self.port), "--http-port", str(self.http_port),
             "--chunk-size", str(CHUNK), "--l1-size-gb", "1", "--l1-init-size-gb", "1", "--eviction-policy", "LRU",
             "--supported-transfer-mode", "auto", "--disable-metrics", "--l2-adapter", json.dumps(spec)],
            stdout=self.log, stderr=subprocess.STDOUT)

    def __enter__(self):
        for _ in range(200):
            try:
                if self.http("GET", "/healthcheck")[0] == 200:
                    return self
            except OSError:
                time.sleep(0.5)
            if self.process.poll() is not None:
                break
        sys.exit("the server ended: " + self.said()[-2000:])

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def http(self, method, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.http_port}{path}", method=method,
                                         data=json.dumps(body).encode() if body else None,
                                         headers={"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def prefetch(self, tokens, ranks, salt="", model=MODEL):
        """Keys found and asked for, by LMCache's own count; the warm-up of docs/serving.md."""
        status, job = self.http("POST", "/cache/prefetches", {
            "model_name": model, "world_size": ranks, "token_ids": tokens, "cache_salt": salt, "source_tier": "l2",
            "target_tier": "l1"})
        while status in (200, 202):
            status, job = self.http("GET", "/cache/prefetches/" + job["request_id"])
            if status == 200 and job["status"] == "completed":
                return job["found_keys"], job["total_keys"]
            time.sleep(0.05)
        return status, job


def vllm_pages(backend, layout, heads, blocks=140):
    """vLLM's configuration of a cache, and its view of each layer."""
    spec = backend.customize_spec(FullAttentionSpec(block_size=BLOCK, num_kv_heads=heads, head_size=DIM,
                                                    dtype=torch.bfloat16))
    assert layout in (backend.supported_kv_cache_layouts() or KVCacheLayout)
    names = [f"model.layers.{i}.self_attn.attn" for i in range(LAYERS)]
    strides = compute_layout_strides(spec, blocks, LAYERS, layout)
    size = blocks * LAYERS * spec.page_size_bytes
    at = KVCacheTensor(size=size, layers=names, layer_stride=strides[0], block_stride=strides[1])
    views = create_kv_cache_views(torch.zeros(size, dtype=torch.int8), spec, blocks, layout, at)
    return KVCacheConfig(blocks, [at], [KVCacheGroupSpec(names, spec)]), dict(zip(names, views))


def vllm_rows(backend, cache):
    """K and V of a layer, [blocks, tokens, heads, dim]: where the backend has its kernel write them."""
    module, seen = sys.modules[backend.__module__], []
    kernel = "triton_reshape_and_cache_flash" if "triton" in module.__name__ else "reshape_and_cache_flash"
    impl = object.__new__(backend.get_impl_cls())
    vars(impl).update(attn_type="decoder", head_size=DIM, kv_cache_dtype="auto", _is_per_token_head_quant=False)
    with _kernel:
        setattr(module, kernel, lambda key, value, k, v, *_: seen.extend((k, v)))
        impl.do_kv_cache_update(SimpleNamespace(_k_scale=None, _v_scale=None), None, None, cache, None)
    return seen


FLASH, TRITON = flash_attn.FlashAttentionBackend, triton_attn.TritonAttentionBackend
LAYOUTS = [KVCacheLayout.LBNHC, KVCacheLayout.LBHNC, KVCacheLayout.BLHNC, KVCacheLayout.BLNHC]  # those that LMCache takes


class Rank:
    """The side of one rank of vLLM: paged tensors of every layer, in blocks of an order of its own."""

    def __init__(self, server, rank, ranks, model=MODEL, heads=HEADS, name="r", backend=FLASH, layout=LAYOUTS[0],
                 mode=MODES[0]):
        self.name, self.backend = name, backend
        self.rank, self.ranks, self.model, self.heads = rank, ranks, model, heads // ranks
        self.context = zmq.Context()
        self.context.setsockopt(zmq.LINGER, 0)
        self.client = RequestClientFactory.create(f"tcp://127.0.0.1:{server.port}", context=self.context)
        config, self.pages = vllm_pages(backend, layout, self.heads)
        self.view = next(iter(self.pages.values()))
        self.view = self.view.shape, self.view.stride()  # LMCache moves CPU tensors, and permutes them
        self.blocks = list(range(130, 0, -1))
        self.transfer = create_transfer_context(self.pages, mode=mode, req_client=self.client,
                                                instance_id=os.getpid() * 100 + next(_instances))
        hints = {"kv_layout": translate_vllm_kv_cache_layout(layout.name)}
        groups = create_engine_group_infos_from_vllm(config, self.pages, layout_hints=hints)
        self.transfer.register(self.pages, model, ranks, CHUNK // BLOCK, 20.0, layout_hints=hints,
                               engine_type=EngineType.VLLM, engine_group_infos=groups)

    def key(self, tokens, salt, worker):
        return IPCCacheServerKey(model_name=self.model, world_size=self.ranks, num_kv_readers=1, worker_id=worker,
                                 token_ids=tuple(tokens), start=0, end=len(tokens), cache_salt=salt,
                                 request_id=self.name + salt)

    def lookup(self, tokens, salt=""):
        """Leading chunks that LMCache finds."""
        self.client.lookup(self.key(tokens, salt, None), self.ranks).result(timeout=60)
        while True:
            hit = self.client.query_prefetch_status(self.name + salt).result(timeout=60)
            if hit is not None:
                return hit
            time.sleep(0.02)

    def retrieve(self, tokens, salt=""):
        """[K and V, layers, tokens, heads, dim] of what LMCache puts into the pages; None: it could not."""
        blocks = self.blocks[:len(tokens) // BLOCK]
        done = self.transfer.submit_retrieve(self.name + salt, self.key(tokens, salt, self.rank), self.pages, [blocks],
                                             self.transfer.create_recorded_event(), CHUNK // BLOCK).result(timeout=60)
        rows = [[torch.cat([side[b] for b in blocks]) for side in
                 vllm_rows(self.backend, page.as_strided(*self.view, page.storage_offset()))] for page in self.pages.values()]
        return torch.stack([torch.stack(sides) for sides in zip(*rows)]).view(torch.uint16).numpy() if done else None

    def end(self, salt=""):
        self.client.end_session(self.name + salt).result(timeout=60)

    def close(self):
        self.transfer.close()
        self.client.close()


class SglangRank:
    """The side of SGLang: LMCache's connector in it, over its own pool, in pages of an order of its own."""

    def __init__(self, server, rank, ranks, name, mode=MODES[0], page=64):
        from lmcache.integration.sglang.unified_lmcache_mp_connector import UnifiedLMCacheMPConnector
        from sglang.srt.mem_cache.allocator import PagedTokenToKVPoolAllocator
        from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool
        from sglang.srt.mem_cache.unified_cache.components import ComponentType

        self.name, self.page, type = name, page, torch.bfloat16
        pool = MHATokenToKVPool(2048, page, type, HEADS // ranks, DIM, LAYERS, "cpu", enable_memory_saver=False)
        allocator = PagedTokenToKVPoolAllocator(2048, page, type, "cpu", pool, False)
        model = SimpleNamespace(model_path=MODEL, attention_arch=None,
                                hf_config=SimpleNamespace(architectures=["LlamaForCausalLM"]))
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            json.dump({"mp_host": "127.0.0.1", "mp_port": server.port,
                       "extra_config": {"lmcache.mp.mp_transfer_mode": mode}}, f)
            f.flush()
            self.connector = UnifiedLMCacheMPConnector(
                config_file=f.name, model_config=model, tp_size=ranks, tp_rank=rank, tp_group=None, page_size=page,
                token_to_kv_pool_allocator=allocator, req_to_token_pool=None, tree_components=(ComponentType.FULL,),
                mamba_component=None, sliding_window_size=None)

    def lookup(self, tokens):
        self.found = self.connector.submit_lookup(self.name, tokens, local_hit_tokens=0, cache_salt="")
        while self.connector.poll_lookup(self.found) is None:
            time.sleep(0.02)
        return self.found.total_hit_tokens // CHUNK

    def retrieve(self, tokens):
        at = torch.arange(self.page, self.page + len(tokens)).reshape(-1, self.page).flip(0).reshape(-1)
        load = self.connector.submit_load(self.found, at, local_hit_tokens=0)
        load.future.result(timeout=60)
        rows = [cache.flatten(0, 1)[at] for cache in self.connector._kv_caches.values()]  # LMCache moved the pool's tensors
        done = self.connector.complete_load(load)
        return torch.stack(rows).view(2, LAYERS, *rows[0].shape).view(torch.uint16).numpy() if done else None

    def end(self):
        self.connector.end_session(self.name)

    def close(self):
        self.connector.close()
