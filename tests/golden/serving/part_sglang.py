"""part_sglang.py MODEL FOLDER - SGLang's own HiCache classes fill its host pool through evp.sglang with the contexts of
`place`: every byte of every page is compared with the payload, in four layouts, on one rank and on three, as `none` and
as `kivi`; and what must miss misses."""
import itertools, json, os, sys

folder = os.path.abspath(sys.argv[2])
import numpy as np, torch
from sglang.srt.mem_cache.hicache_storage import HiCacheStorageConfig
from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool
from sglang.srt.mem_cache.pool_host.mha import MHATokenToKVPoolHost
from sglang.srt.mem_cache.storage.backend_factory import StorageBackendFactory
from sglang.srt.mem_cache.utils import get_hash_str, storage_namespace_seed
from payload_rows import bf16, rows

PAGE, LAYERS, HEADS, DIM = 64, 30, 3, 64
failed = 0


def check(ok, text):
    global failed
    failed += not ok
    print("ok " if ok else "NOT", text)


def pool_of(layout, heads, dtype=torch.bfloat16):
    """SGLang's host pool for SGLang's device pool."""
    device = MHATokenToKVPool(PAGE, PAGE, dtype, heads, DIM, LAYERS, "cpu", enable_memory_saver=False)
    return MHATokenToKVPoolHost(device.get_device_pool_infos()[0].buffer_info, 2.0, 0, PAGE, layout, pin_memory=False,
                                device="cpu", device_capacity_tokens=1024, start_layer=0, end_layer=LAYERS)


def backend(pool, rank=0, size=1, name="none", model="Org/smol", mla=False, **more):
    extra = {"backend_name": "evp", "module_path": "evp.sglang", "class_name": "EvpHiCache", "interface_v1": 1,
             "manifest": f"{folder}/{name}.jsonl", **(more or {"model_digest": digest})}
    config = HiCacheStorageConfig(tp_rank=rank, tp_size=size, pp_rank=0, pp_size=1, attn_cp_rank=0, attn_cp_size=1,
                                  is_mla_model=mla, enable_storage_metrics=False,
                                  is_page_first_layout=pool.layout == "page_first", model_name=model,
                                  extra_config=extra)
    made = StorageBackendFactory.create_backend("dynamic", config, pool)
    made.register_mem_pool_host(pool)
    return made


def page_of(pool, index):
    """[K and V, layers, tokens, heads, dim] of a page of the pool, by SGLang's own reading of its layout."""
    page = pool.get_data_page(index, flat=True)
    if pool.layout == "page_first":
        return page.reshape(2, PAGE, LAYERS, -1, DIM).permute(0, 2, 1, 3, 4)
    if pool.layout == "page_head":
        return page.reshape(2, -1, PAGE, LAYERS, DIM).permute(0, 3, 2, 1, 4)
    return page.reshape(2, LAYERS, PAGE, -1, DIM)


def check_pages(tokens, want, layout, rank, size, name):
    pool = pool_of(layout, HEADS // size)
    evp = backend(pool, rank, size, name)
    hashes = get_hash_str(tokens[:len(tokens) // PAGE * PAGE], None, page_size=PAGE)
    at = pool.alloc(len(hashes) * PAGE).flip(0).reshape(-1, PAGE).flip(1).reshape(-1)  # pages in another order
    ok = evp.batch_exists(hashes + ["00" * 32]) == len(hashes) and all(evp.batch_get_v1(hashes, at))
    mine = want[:, :, :, rank * HEADS // size:(rank + 1) * HEADS // size]
    same = sum(np.array_equal(page_of(pool, int(at[i * PAGE])).contiguous().view(torch.uint16).numpy(),
                              mine[:, :, i * PAGE:(i + 1) * PAGE]) for i in range(len(hashes)))
    evp.close()
    check(ok and same == len(hashes) > 9,
          f"{name} {layout} rank {rank} of {size}: {same} of {len(hashes)} pages are equal")


def refused(text, **more):
    pool = pool_of(more.pop("layout", "layer_first"), more.pop("heads", HEADS), more.pop("dtype", torch.bfloat16))
    try:
        evp = backend(pool, **more)
        hits = evp.batch_exists(get_hash_str(ids[first][:PAGE], None, page_size=PAGE))
        evp.close()
        check(hits == 0, f"{text}: a miss")
    except ValueError as error:
        check(str(error).startswith("evp: "), f"{text}: {error}")


vector = ["fea7b32778ecbdd7adee1941e98c89cf96bbc762f5f1beb0be24e36a456fbbc5",
          "1617a7384eff5e9135098c24794739af884859cdb17c1a61a834e8d6ac997351"]
check(get_hash_str(list(range(128)), None, page_size=64) == vector, "SGLang's hashes are those that were published")
with open(f"{folder}/prompts.json") as f:
    ids = json.load(f)["contexts"]
with open(f"{folder}/none.jsonl") as f:
    digest = json.loads(f.readline())["model_digest"]
first, second = sorted(ids)[:2]
for name, layout in itertools.product(("none", "kivi_bits_4"), ("layer_first",
                                      "page_first", "page_first_direct", "page_head")):
    for id, ranks in ((first, 1), (second, 3)):
        want = bf16(rows(f"{folder}/payloads/{id}-{name}.safetensors"))
        for rank in range(ranks):
            check_pages(ids[id], want, layout, rank, ranks, name)
refused("the layout page_unified", layout="page_unified")
refused("a model with MLA", mla=True)
refused("a cache in fp8", dtype=torch.float8_e4m3fn)
refused("a model of another name", model="Org/other", model_name="other")
refused("a model of another digest", model_digest="0" * 64)
refused("a model with other heads", heads=2)
refused("a config that drops tokens", name="snapkv_drop_0_5")
evp = backend(pool_of("layer_first", HEADS))
for salt in (("lora", None), (None, "tenant")):
    page = get_hash_str(ids[first][:PAGE], storage_namespace_seed(*salt), page_size=PAGE)
    check(evp.batch_exists(page) == 0, f"LoRA adapter and tenant {salt}: a miss")
evp.close()
sys.exit(failed > 0)
