"""part_lmcache.py MODEL FOLDER - `lmcache server` with the plugin evp.lmcache over the contexts of `place`, and an
engine's side in the layouts of vLLM's and SGLang's GPU code: what is prefetched and retrieved into paged tensors is
compared with the payload byte by byte, on one rank and on three, as `none` and as `kivi`; what must miss misses; and
vLLM itself, on this CPU, is refused and computes."""
import json, os, subprocess, sys

folder = os.path.abspath(sys.argv[2])
os.environ.update(LMCACHE_TRACK_USAGE="false", LMCACHE_LOG_LEVEL="WARNING", OMP_NUM_THREADS="1")
import numpy as np
import lmcache_engine as engines
from lmcache.v1.multiprocess.token_hasher import TokenHasher
from lmcache_engine import CHUNK, MODES, Rank, Server
from payload_rows import bf16, rows

failed = 0


def check(ok, text):
    global failed
    failed += not ok
    print("ok " if ok else "NOT", text, flush=True)


def check_config(name, id, ranks):
    tokens = ids[id][:len(ids[id]) // CHUNK * CHUNK]
    want = bf16(rows(f"{folder}/payloads/{id}-{name}.safetensors"))[:, :, :len(tokens)]
    with Server(f"{folder}/{name}.jsonl", digest) as server:
        engine = [Rank(server, rank, ranks) for rank in range(ranks)]
        n = len(tokens) // CHUNK
        found = server.prefetch(tokens, ranks)
        check(found == (n * ranks, n * ranks), f"{name} on {ranks} ranks: prefetched {found[0]} of {found[1]} keys")
        hit = engine[0].lookup(tokens)
        for rank in engine:
            got = rank.retrieve(tokens[:hit * CHUNK]) if hit else None
            mine = want[:, :, :, rank.rank * rank.heads:(rank.rank + 1) * rank.heads]
            check(got is not None and hit == n > 2 and np.array_equal(got, mine),
                  f"{name} rank {rank.rank} of {ranks}: {hit * CHUNK} tokens are equal")
        engine[0].end()
        if ranks == 1:
            check_misses(server, engine[0], tokens)
        for rank in engine:
            rank.close()


def check_misses(server, rank, tokens):
    other = Rank(server, 0, 1, "Org/other")
    check(other.lookup(tokens) == 0, "a model of another name: a miss")
    check(rank.lookup(tokens, "stranger") == 0, "a tenant without a namespace: a miss")
    check(rank.lookup(tokens[1:CHUNK + 1]) == 0, "other tokens: a miss")
    other.close()


def check_layouts():
    """All that LMCache takes of vLLM, and SGLang's; each asks for a context that LMCache has not seen if there are enough."""
    sides = [(engines.SglangRank, {"mode": mode}) for mode in MODES]
    sides += [(Rank, {"mode": mode, "backend": backend, "layout": layout}) for mode in MODES for layout in engines.LAYOUTS
              for backend in (engines.FLASH, engines.TRITON)
              if mode == MODES[1] or layout in engines.LAYOUTS[:2]]  # of CPU tensors LMCache itself takes no others
    with Server(f"{folder}/none.jsonl", digest) as server:
        for n, (side, more) in enumerate(sides):
            id = long[n % len(long)]
            tokens = ids[id][:len(ids[id]) // CHUNK * CHUNK]
            engine = side(server, 0, 1, name=f"{n}", **more)
            hit = engine.lookup(tokens)
            same = hit == len(tokens) // CHUNK and np.array_equal(
                engine.retrieve(tokens), bf16(rows(f"{folder}/payloads/{id}-none.safetensors"))[:, :, :len(tokens)])
            text = ", ".join(getattr(value, "name", None) or getattr(value, "__name__", value) for value in more.values())
            check(same, f"{side.__name__}, {text}: {hit} chunks")
            engine.end()
            engine.close()


def check_settings(id):
    """Without them nothing that may be wrong is served."""
    tokens = ids[id][:CHUNK]
    with Server(f"{folder}/none.jsonl", digest, device=None) as server:
        for mode in MODES:
            rank = Rank(server, 0, 1, mode=mode, name=mode)
            check(rank.lookup(tokens) == 0, f"vLLM on a device that is not said, {mode}: a miss")
            rank.close()
        said = server.said()
        check("this engine is on cpu: " in said and "a device that LMCache does not tell: " in said, "and the log says so")
        rank = engines.SglangRank(server, 0, 1, "s")
        check(rank.lookup(tokens) == 1, "SGLang is found")
        rank.close()
    with Server(f"{folder}/none.jsonl", digest, lora=None) as server:
        rank = Rank(server, 0, 1)
        check(rank.lookup(tokens) == 0, "an engine that may have LoRA adapters: a miss")
        check(server.said().count("evp: nothing is served: ") == 1, "and the log says so, once")
        rank.close()


def check_vllm(model, mode):
    """vLLM's own worker, in a process of its own."""
    with Server(f"{folder}/none.jsonl", digest, model=model, device=None) as server:
        run = subprocess.run([sys.executable, __file__, model, folder, str(server.port)], stdout=subprocess.PIPE,
                             text=True, env=dict(os.environ, LMCACHE_MP_TRANSFER_MODE=mode))
        check(run.returncode == 0 and run.stdout.endswith("took 0 tokens\n"), f"vLLM on this CPU, {mode}: a miss")
        check("vLLM is served on CUDA only" in server.said(), "and the log says why")


def ask_vllm(model, port):
    import numba.core.registry
    sys.modules.pop("llvmlite.binding.ffi")  # vLLM 0.32 on a CPU looks into all modules, and falls over this one
    from part_vllm import Engine

    engine = Engine(model, folder, "none", dtype="bfloat16", transfer=lambda _: {
        "kv_connector": "LMCacheMPConnector", "kv_role": "kv_both",
        "kv_connector_extra_config": {"lmcache.mp.host": "tcp://127.0.0.1", "lmcache.mp.port": port}})
    print("took", engine.ask([ids[long[0]] + [1, 2, 3]], 2)[0][1], "tokens", flush=True)


def check_tenants(id):
    """Contexts of the namespace `tenant` on the tier; the server's own namespace is empty."""
    tokens = ids[id][:CHUNK]
    subprocess.run(["evp-load", "-q", f"{folder}/none.jsonl", "-p",
                   f"{folder}/payloads", "--namespace=tenant"], check=True)
    with Server(f"{folder}/none.jsonl", digest, name_space="nobody") as server:
        rank = Rank(server, 0, 1)
        check(rank.lookup(tokens, "tenant") == 1, "a tenant finds its namespace")
        check(rank.lookup(tokens) == 0, "and nobody else does")
        rank.close()
    with Server(f"{folder}/none.jsonl", digest) as server:
        narrow = Rank(server, 0, 1, heads=2)
        check(narrow.lookup(tokens) == 0, "an engine with other heads: a miss")
        narrow.close()
    subprocess.run(["evp-load", "-q", f"{folder}/none.jsonl", "--retire=tenant"], check=True)


with open(f"{folder}/prompts.json") as f:
    ids = json.load(f)["contexts"]
long = [id for id in sorted(ids) if len(ids[id]) >= 3 * CHUNK]
if len(sys.argv) > 3:
    ask_vllm(sys.argv[1], int(sys.argv[3]))
    os._exit(0)
vectors = {16: ["32748aa00c5090e4f0e1f149078a07381f4f618d898c1cbac17e36521c3de48f",
                "b41527751e5bac5a664450d89585d03c64c3985924969dfb1808b151dd214695"],
           256: ["084547b6c40ed5b05ba8cd0305db5bf74d5617673948d9ed193ab7d6cbc484d4",
                 "e5ffee45c2b9db326814c9692dc594369887ba3b0df5761817820b60f864c8e0"]}
for size, digits in vectors.items():
    hashes = TokenHasher(size, "blake3").compute_chunk_hashes(list(range(2 * size)))
    check([h.hex() for h in hashes] == digits, f"LMCache's hashes of {size} tokens are those that were published")
with open(f"{folder}/none.jsonl") as f:
    digest = json.loads(f.readline())["model_digest"]
for name, id, ranks in (("none", long[0], 1), ("none", long[1], 3),
                        ("kivi_bits_4", long[0], 3), ("kivi_bits_2", long[1], 1)):
    check_config(name, id, ranks)
check_tenants(long[0])
check_layouts()
check_settings(long[0])
for mode in MODES:
    check_vllm(sys.argv[1], mode)
sys.stdout.flush()
os._exit(failed > 0)  # LMCache leaves threads behind
