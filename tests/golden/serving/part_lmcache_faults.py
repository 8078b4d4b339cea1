"""part_lmcache_faults.py MODEL FOLDER - `lmcache server` with the plugin evp.lmcache over the contexts of `place`,
while its manifest comes late, payloads are damaged and removed, plans replace each other beside three clients, and a Redis
server is paused, killed and restarted. What LMCache gives an engine must be a placed payload's rows or nothing, and no
process may die."""
import glob, json, os, random, shutil, signal, subprocess, sys, tempfile, threading, time

folder = os.path.abspath(sys.argv[2])
os.environ.update(LMCACHE_TRACK_USAGE="false", LMCACHE_LOG_LEVEL="ERROR", OMP_NUM_THREADS="1", EVP_REDIS_TIMEOUT="0.5")
import numpy as np
from lmcache_engine import CHUNK, Rank, Server, free_ports
from payload_rows import bf16, rows

SECONDS = 30
random.seed(1)
failed = 0


def check(ok, text):
    global failed
    failed += not ok
    print("ok " if ok else "NOT", text, flush=True)


def plan(path, source, **tier):
    """A manifest as `source`, on another tier."""
    with open(f"{folder}/{source}.jsonl") as f:
        lines = f.read().splitlines()
    head = json.loads(lines[0])
    head["tiers"][0].update(tier)
    with open(path + ".new", "w") as f:
        f.write("\n".join([json.dumps(head)] + lines[1:]) + "\n")
    os.rename(path + ".new", path)


def load(path, *more):
    return subprocess.run(["evp-load", "-q", path, "-p",
                          f"{folder}/payloads", *more], stderr=subprocess.PIPE).returncode


def want(id, name="none"):
    return bf16(rows(f"{folder}/payloads/{id}-{name}.safetensors"))


def ask(rank, id):
    """Leading chunks that were found, and their rows."""
    tokens = ids[id][:len(ids[id]) // CHUNK * CHUNK]
    hit = rank.lookup(tokens)
    got = rank.retrieve(tokens[:hit * CHUNK]) if hit else None
    rank.end()
    return (0, None) if got is None else (hit, got)


def served(rank, id, text, all_chunks, tries=1):
    """Asks; the rows must be right, and of all chunks or of none; of all in the end, with several tries."""
    whole, equal = len(ids[id]) // CHUNK, True
    for _ in range(tries):
        hit, got = ask(rank, id)
        equal = equal and (not hit or np.array_equal(got, want(id)[:, :, :hit * CHUNK]))
        if hit == whole:
            break
        time.sleep(tries > 1)
    check(equal and hit == (whole if all_chunks else 0),
     f"{text}: {hit} of {whole} chunks, {'equal' if equal else 'WRONG'}")


def payload_file(tier, id):
    """Of a context in a tier's folder: the file of the same bytes."""
    with open(f"{folder}/payloads/{id}-none.safetensors", "rb") as f:
        bytes = f.read()
    for path in glob.glob(f"{tier}/evp-payloads/*/*"):
        with open(path, "rb") as f:
            if f.read() == bytes:
                return path


def check_folder(names):
    with Server("m.jsonl", digest) as server:
        rank = Rank(server, 0, 1)
        served(rank, names[0], "no manifest yet", False)
        plan("m.jsonl", "none", uri=os.path.abspath("tier"))
        check(load("m.jsonl") == 0, "loaded")
        served(rank, names[0], "nothing fails", True, 4)
        path = payload_file("tier", names[1])
        os.chmod(path, 0o600)
        with open(path, "r+b") as f:
            f.seek(os.path.getsize(path) // 2)
            f.write(os.urandom(64))
        served(rank, names[1], "a payload is damaged", False)
        os.unlink(payload_file("tier", names[2]))
        served(rank, names[2], "a payload is removed", False)
        served(rank, names[3], "the others are served", True)
        load("m.jsonl", "--verify")
        served(rank, names[1], "damaged, and loaded again", True, 20)
        served(rank, names[2], "removed, and loaded again", True, 20)
        os.unlink("m.jsonl")
        served(rank, names[4], "the manifest is away", True)
        rank.close()
        check(server.process.poll() is None, "the server lives")


def client(server, n, names, rows_of, counts, stop):
    rank = Rank(server, 0, 1, name=f"client{n}")
    while not stop.is_set():
        id = random.choice(names)
        hit, got = ask(rank, id)
        for i in range(hit):  # chunks may be of payloads placed one after another
            at = slice(i * CHUNK, (i + 1) * CHUNK)
            same = (c for c, rows in rows_of[id].items() if np.array_equal(got[:, :, at], rows[:, :, at]))
            counts[next(same, "WRONG")] += 1
        counts["asked"] += 1
        counts["missed"] += not hit
    rank.close()


def check_loads(names):
    """Plans replace each other beside three clients; every chunk is as `none` or as one of the kivis."""
    sources = ("none", "kivi_bits_4", "kivi_bits_2")
    rows_of = {id: {name: want(id, name) for name in sources} for id in names}
    plan("m.jsonl", "none", uri=os.path.abspath("tier2"))
    load("m.jsonl")
    stop, counts, loads = threading.Event(), dict.fromkeys((*sources, "WRONG", "asked", "missed"), 0), 0
    with Server("m.jsonl", digest) as server:
        clients = [threading.Thread(target=client, args=(server, n, names, rows_of, counts, stop)) for n in range(3)]
        for c in clients:
            c.start()
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            plan("m.jsonl", sources[loads % 3], uri=os.path.abspath(("tier2", "tier3")[loads % 2]))
            check(load("m.jsonl") == 0, "loaded") if loads < 2 else load("m.jsonl")
            loads += 1
            time.sleep(1)
        alive = all(c.is_alive() for c in clients)
        stop.set()
        for c in clients:
            c.join()
        check(alive and server.process.poll() is None and not counts["WRONG"] and counts["none"] and counts["kivi_bits_4"],
              f"{loads} loads beside three clients, in chunks: {counts}")


class Redis:
    def __init__(self, port):
        self.process = subprocess.Popen(["redis-server", "--port", str(port), "--save",
                                        "", "--dir", "."], stdout=subprocess.DEVNULL)
        time.sleep(1)

    def end(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait()


def check_redis(names):
    port = free_ports(1)[0]
    redis = Redis(port)
    plan("far.jsonl", "none", kind="redis", uri=f"redis://127.0.0.1:{port}", state=os.path.abspath("state"))
    check(load("far.jsonl") == 0, "loaded into Redis")
    with Server("far.jsonl", digest) as server:
        rank = Rank(server, 0, 1)
        served(rank, names[0], "Redis serves", True, 20)
        redis.process.send_signal(signal.SIGSTOP)
        served(rank, names[1], "Redis is paused", False)
        redis.process.send_signal(signal.SIGCONT)
        served(rank, names[1], "Redis goes on", True, 20)
        redis.end()
        served(rank, names[2], "Redis is killed", False)
        redis = Redis(port)
        time.sleep(8)  # until the adapter asks it again
        served(rank, names[2], "Redis is back, and empty", False)
        check(load("far.jsonl", "--verify") == 0, "loaded again")
        served(rank, names[2], "Redis serves again", True, 20)
        rank.close()
        check(server.process.poll() is None, "the server lives")
    redis.end()


with open(f"{folder}/prompts.json") as f:
    ids = json.load(f)["contexts"]
with open(f"{folder}/none.jsonl") as f:
    digest = json.loads(f.readline())["model_digest"]
names = sorted(ids, key=lambda id: -len(ids[id]))
with tempfile.TemporaryDirectory() as scratch:
    os.chdir(scratch)
    check_folder(names)
    check_loads(names[:4])
    if shutil.which("redis-server"):
        check_redis(names)
    else:
        print("skip Redis: no redis-server")
    os.chdir("/")
sys.stdout.flush()
os._exit(failed > 0)  # LMCache leaves threads behind
