"""hashes.py BUILD_DIR FOLDER [CONTEXTS [TOKENS]] - what opening a store by hashes takes, as evp.lmcache and evp.sglang
do: makes contexts in FOLDER (10,000 of 10,000 tokens take 3 GB), or takes those that are there, and prints the seconds
to open them and to refresh after none and after ten have changed. With LMCache's hashes if lmcache is
installed, and with SHA-256 over pages of 64 tokens, as SGLang does."""
import hashlib, itertools, os, resource, subprocess, sys, time
from concurrent.futures import ThreadPoolExecutor

build, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
n, n_tokens = (int(sys.argv[i]) if i < len(sys.argv) else 10000 for i in (3, 4))
os.environ["EVP_LIBRARY"] = f"{build}/libevicpress.so"
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../contrib/python"))
from evp import engine, placed


def load(name, first):
    """Places n contexts, from number `first` on."""
    lines = ["ids own - - -", "model tiny 1 1 2", "tier dram dram " + os.path.abspath("dram") + " -"]
    lines += [f"context c{i} {n_tokens} none dram" for i in range(first, first + n)]
    subprocess.run([f"{build}/tests/tools/make-load", name, "pay"],
                   input="\n".join(lines) + "\n", text=True, check=True)
    subprocess.run([f"{build}/evp-load", "-q", name, "-p", "pay"], check=True)


def sha256(tokens):
    """SGLang's hashes, in Python; its own are compiled."""
    raw, out, last = tokens.tobytes(), [], b""
    for i in range(0, len(tokens) // 64 * 256, 256):
        last = hashlib.sha256(last + raw[i:i + 256]).digest()
        out.append(last)
    return out


def model(cache):
    return engine.Model(1, 1, 2, cache["rope"], "bf16", "tiny")


def refresh(space, text):
    start = time.perf_counter()
    space._due = 0
    space.refresh(None)
    print(f"    {text}: {time.perf_counter() - start:.3f} s", flush=True)


os.makedirs(folder, exist_ok=True)
os.chdir(folder)
ways = {"SHA-256, 64 tokens": sha256}
try:
    from lmcache.v1.multiprocess.token_hasher import TokenHasher

    hasher = TokenHasher(256, "blake3")
    ways = {"LMCache's hashes, 256 tokens": lambda tokens: hasher.compute_chunk_hashes(tokens.tolist()), **ways}
except ImportError:
    pass
for name, way in ways.items():
    load("plan.jsonl", 0)
    print(f"{n} contexts of {n_tokens} tokens, {name}:")
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    space = placed.Placed(engine.Store("plan.jsonl"), way, model, ThreadPoolExecutor(1))
    space.refresh(None)
    seconds = time.perf_counter() - start
    print(f"    opened: {seconds:.2f} s, {len(space.contexts)} contexts, {len(space.where)} hashes, "
          f"{(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024:.0f} MB")
    refresh(space, "refresh, nothing changed")
    load("plan.jsonl", 10)
    refresh(space, "refresh, ten contexts left and ten came")
    space.close()
