"""part_lmcache.py MODEL FOLDER - `lmcache server` with the plugin evp.lmcache over the contexts of `place`, and an
engine's side made of LMCache's own classes: what is prefetched and retrieved into paged tensors is compared with the
payload byte by byte, on one rank and on three, as `none` and as `kivi`; and what must miss misses."""
import json, os, subprocess, sys

folder = os.path.abspath(sys.argv[2])
os.environ.update(LMCACHE_TRACK_USAGE="false", LMCACHE_LOG_LEVEL="WARNING", OMP_NUM_THREADS="1")
import numpy as np
from lmcache.v1.multiprocess.token_hasher import TokenHasher
from lmcache_engine import CHUNK, MODEL, Rank, Server
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
    with Server(f"{folder}/none.jsonl", digest, lora=None) as server:
        rank = Rank(server, 0, 1)
        check(rank.lookup(tokens) == 0, "an engine that may have LoRA adapters: a miss")
        rank.close()
    subprocess.run(["evp-load", "-q", f"{folder}/none.jsonl", "--retire=tenant"], check=True)


vectors = {16: ["32748aa00c5090e4f0e1f149078a07381f4f618d898c1cbac17e36521c3de48f",
                "b41527751e5bac5a664450d89585d03c64c3985924969dfb1808b151dd214695"],
           256: ["084547b6c40ed5b05ba8cd0305db5bf74d5617673948d9ed193ab7d6cbc484d4",
                 "e5ffee45c2b9db326814c9692dc594369887ba3b0df5761817820b60f864c8e0"]}
for size, digits in vectors.items():
    hashes = TokenHasher(size, "blake3").compute_chunk_hashes(list(range(2 * size)))
    check([h.hex() for h in hashes] == digits, f"LMCache's hashes of {size} tokens are those that were published")
with open(f"{folder}/prompts.json") as f:
    ids = json.load(f)["contexts"]
with open(f"{folder}/none.jsonl") as f:
    digest = json.loads(f.readline())["model_digest"]
long = [id for id in sorted(ids) if len(ids[id]) >= 3 * CHUNK]
for name, id, ranks in (("none", long[0], 1), ("none", long[1], 3),
                        ("kivi_bits_4", long[0], 3), ("kivi_bits_2", long[1], 1)):
    check_config(name, id, ranks)
check_tenants(long[0])
sys.stdout.flush()
os._exit(failed > 0)  # LMCache leaves threads behind
