"""evp.vllm_dropped - lets vLLM hold fewer rows of a context than it has tokens.

For contexts placed with dropped tokens: knorm, keydiff, snapkv, tova, h2o, streamingllm, lagkv, random, cur,
expected_attention, also behind criticalkv or in a chain with a quantiser; arkv. Their n rows go into the request's first n slots, and
the next token keeps its position T. Only the length of the request and the slots of its new tokens are smaller by T - n: a
subclass of the engine's own attention backend subtracts it.

    "kv_connector_extra_config": {"manifest": "...", "dropped": true}

vLLM loads the subclass through an entry point (vllm.general_plugins) that pip installs with evp. Where `dropped` is not
true it does what the engine's class does. CPU_ATTN is tested. FLASH_ATTN and TRITON_ATTN were written from their source
and have not been run. Other backends, FLASHINFER among them, compute such contexts, as does speculative decoding: the log says
so once. Not with context parallelism, sliding windows or MLA. CUDA graphs are used piecewise.

In vLLM's prefix cache such a request has block hashes of its own (evp.vllm): nobody finds its blocks there, and it does not use
blocks of others.
"""
import sys
from copy import copy

BACKENDS = {"CPU_ATTN": ("cpu_attn", "CPUAttentionBackend"), "FLASH_ATTN": ("flash_attn", "FlashAttentionBackend"),
            "TRITON_ATTN": ("triton_attn", "TritonAttentionBackend")}

_less = None     # (blocks) tokens dropped by the request whose first block it is, on the cache's device; in a worker
_first = {}      # request -> its first block, of requests with dropped tokens
_layers = set()  # names of the layers whose metadata are made here


def register():
    """The entry point: a name for each backend, looked up when vLLM chooses that backend."""
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    for name, backend in AttentionBackendEnum.__members__.items():
        if name in BACKENDS and not backend.is_overridden():
            register_backend(backend, f"{__name__}.{name}")


def registered():
    from vllm.v1.attention.backends.registry import AttentionBackendEnum

    return any(name in BACKENDS and backend.get_path() == f"{__name__}.{name}"
               for name, backend in AttentionBackendEnum.__members__.items())


def __getattr__(name):
    if name not in BACKENDS:
        raise AttributeError(name)
    from importlib import import_module

    module, backend = BACKENDS[name]
    made = subclass(getattr(import_module(f"vllm.v1.attention.backends.{module}"), backend))
    setattr(sys.modules[__name__], name, made)
    return made


def asked(config):
    """Whether EvpConnector, alone or in a MultiConnector, has the setting `dropped`."""
    given = config.kv_transfer_config
    extra = given.kv_connector_extra_config or {} if given else {}
    return bool(extra.get("dropped") or any((one.get("kv_connector_extra_config") or {}).get("dropped")
                                            for one in extra.get("connectors", ())))


def subclass(backend):
    """The engine's backend; its builder knows of dropped tokens."""
    builder = backend.get_builder_cls()

    class Builder(builder):
        def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
            super().__init__(kv_cache_spec, layer_names, vllm_config, device)
            self.whole_block = vllm_config.cache_config.block_size  # kernels may use smaller ones
            if asked(vllm_config):
                _layers.update(layer_names)

        @classmethod
        def get_cudagraph_support(cls, vllm_config, kv_cache_spec):
            support = super().get_cudagraph_support(vllm_config, kv_cache_spec)
            return type(support).NEVER if asked(vllm_config) else support  # the lengths are a new tensor in each step

        def build(self, common_prefix_len, common_attn_metadata, *more, **named):
            if _first:
                shorter = shorten(common_attn_metadata, self.kv_cache_spec.block_size, self.whole_block)
                return super().build(0, shorter, *more, **named)
            return super().build(common_prefix_len, common_attn_metadata, *more, **named)

    class Backend(backend):
        @staticmethod
        def get_builder_cls():
            return Builder

    for made, of in (Builder, builder), (Backend, backend):
        made.__name__ = made.__qualname__ = of.__name__
    return Backend


def shorten(given, block, whole_block):
    """The step's metadata, in which requests with dropped tokens are as long as what they hold. The slots are changed in
    place: layers write by the same tensor. Nothing is copied from the device."""
    import torch

    n_requests, starts = given.num_reqs, given.query_start_loc_cpu
    n = int(starts[n_requests])
    table = given.block_table_tensor[:n_requests].long()
    less = _less[table[:, 0] * block // whole_block]                                     # (requests)
    lengths = (starts[1:n_requests + 1] - starts[:n_requests]).to(less.device)
    request = torch.repeat_interleave(torch.arange(n_requests, device=less.device), lengths, output_size=n)
    end = starts[1:n_requests + 1].to(less.device)[request]
    at = given.seq_lens[request] - less[request] - end + torch.arange(n, device=less.device)  # (tokens) row of each
    slots = table[request, at // block] * block + at % block
    given.slot_mapping[:n] = torch.where(less[request] > 0, slots.to(given.slot_mapping.dtype), given.slot_mapping[:n])
    out = copy(given)
    out.seq_lens = given.seq_lens.clone()
    out.seq_lens[:n_requests] -= less
    return out


# ---- marks, by a worker's own thread ---------------------------------------------------------------------------------


def prepare(n_blocks, device):
    global _less
    import torch

    _first.clear()
    _less = torch.zeros(n_blocks, dtype=torch.int32, device=device)


def covers(names):
    return names <= _layers


def mark(request, block, dropped):
    _first[request] = block
    _less[block] = dropped


def unmark(requests):
    for request in requests & _first.keys():
        _less[_first.pop(request)] = 0
