"""faults.py TIER - a table of what each operation does while one tier, payload, file or server fails, and after the fault.

Makes the inputs in the working directory, then runs every fault of TIER, ssd or far, as `faults.py TIER NUMBER`: a process with
a new store of six contexts, three on `dram`, which never fails, and three on TIER, which does. It opens the store before the fault,
and again after it, and does the operations in the order of the columns; those that change tiers get a store of their own. What they
say is in faults.log.

To add a fault: one line in FAULTS. To add an operation: a line in looks() or changes(), and its name in COLUMNS.
"""
import contextlib, fcntl, hashlib, json, os, sqlite3, subprocess, sys, time

import evp
from redis_front import Front

W = os.getcwd()
TIER = sys.argv[1]
SSD, FAR = f"{W}/disk/ssd", f"{W}/far"
SHOWN = ["dram", SSD if TIER == "ssd" else FAR]
MODEL = ["--model", "synthetic:tiny", "--chat-template", "none"]
CODES = {-2: "io", -3: "damaged", -4: "gone", -6: "argument", -7: "unknown", -8: "exists", -9: "full", -10: "busy"}
IDS = "abcdefgh"  # a e g: on dram; b f h: on the tier that fails; e f: moved; g h: removed; c d: put
OTHER, FAILING = "aeg", "bfh"


# ---- the inputs -------------------------------------------------------------------------------------------------------


def run(*command, **how):
    """The exit status of a command, its last line in `said`."""
    global said
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=30, **how)
    except subprocess.TimeoutExpired:
        return "hangs"
    said = " ".join(command) + ": " + done.stderr.strip()
    log(said)
    return done.returncode


def log(text):
    with open("faults.log", "a") as out:
        out.write(text + "\n")


def tier_rows(last):
    rate = {"capacity_bytes": 10**6, "read_bytes_per_s": 1e9, "write_bytes_per_s": 1e9, "latency_s": 0}
    far = {"name": "far", "kind": "redis", "uri": f"redis://127.0.0.1:{os.environ.get('FRONT', 1)}", "state": FAR, **rate}
    return [{"name": "dram", "kind": "dram", "uri": f"{W}/dram", **rate}, far if last == "far" else {"name": "ssd", "kind": "file", "uri": SSD, **rate}]


def tokens(id):
    return [int(word) for word in open(f"ids/{id}").read().split()]


def write_manifest(name, last, placed, operation):
    """A manifest that places some contexts, on their tiers, and the tiers alone."""
    model = hashlib.sha256(b"synthetic:tiny").hexdigest()
    head = {"evp": "manifest", "version": 1, "tool": None, "args": [], "from": [], "model_digest": model, "alpha": 1, "tiers": tier_rows(last),
            "solver": "by hand", "objective": 0, "upper_bound": None, "gap": None, "previous": None, "table_digest": None}
    rows = []
    for id in IDS:
        ids = tokens(id)
        digest = hashlib.sha256(b"".join(t.to_bytes(4, "little") for t in ids)).hexdigest()
        there = id in placed
        rows.append({"id": id, "token_digest": digest, "n_tokens": len(ids), "config": "none", "tier": (last if id in "bdfh" else "dram") if there else "recompute",
                     "bytes": 1024 * len(ids) if there else 0, "quality": 1, "quality_test": None, "ttft_s": None, "utility": 0, "frequency": 1,
                     "operation": operation if there else "none", "payload": f"{id}.safetensors" if there else None})
    rows.append({"end": True, "rows": len(IDS)})
    with open(name, "w") as out:
        out.write("".join(json.dumps(row) + "\n" for row in [head, *rows]))
    with open("tiers.json", "w") as out:
        json.dump({"evp": "tiers", "version": 1, "tiers": head["tiers"]}, out)


def make_inputs():
    os.mkdir("ids")
    text = {id: f"{id} is told of the fox and the hens, " * 3 for id in IDS}
    with open("c.jsonl", "w") as out:
        out.write("".join(json.dumps({"id": id, "text": text[id], "ask": " {question}"}) + "\n" for id in IDS))
    with open("q.jsonl", "w") as out:
        out.write("".join(json.dumps({"id": f"{id}/{split}", "context": id, "split": split, "text": "Who?"}) + "\n" for id in IDS for split in ("train", "test")))
    for id in IDS:
        with open(f"ids/{id}", "w") as out:
            subprocess.run(["evp-show", *MODEL, "--ids", id, "c.jsonl"], stdout=out, check=True)
    write_manifest("all.jsonl", "ssd", IDS, "insert")
    for dtype, folder in ("f32", "pay-1"), ("bf16", "pay-2"):  # the reference has bf16 on every processor
        assert run("evp-pack", *MODEL, "all.jsonl", "c.jsonl", "--backend", "reference", "--dtype", dtype, "-o", folder, "-q") == 0, said
    assert run("evp-profile", *MODEL, "c.jsonl", "q.jsonl", "--configs", "none", "--max-new-tokens", "1", "-q", "-o", "p.h5") == 0, said
    assert run("evp-score", "p.h5", "-q", "-o", "table.h5") == 0, said


# ---- the faults -------------------------------------------------------------------------------------------------------


def sh(command):
    return lambda: subprocess.run(command, shell=True, check=True, stderr=subprocess.DEVNULL)


def disk_error(why, path):
    """What tests/cli/load/faults.c does."""
    def begin():
        with open("fault", "w") as out:
            out.write(f"{why} {path() if callable(path) else path}\n")
    return begin


def no_disk_error():
    os.remove("fault")


def payload(id="b"):
    """The file of a context on the tier, as in its state."""
    with contextlib.closing(sqlite3.connect(f"{SHOWN[1]}/evp-state")) as db:
        return f"{SHOWN[1]}/" + db.execute("SELECT file FROM payload WHERE context = ?", id).fetchone()[0]


def damage(path, at, text=b"XXXXXXXX"):
    def begin():
        with open(path() if callable(path) else path, "r+b") as f:
            f.seek(at)
            f.write(text)
    return begin


def lock():
    lock.file = open(f"{SSD}/evp-lock", "r+")
    fcntl.flock(lock.file, fcntl.LOCK_EX)


def redis(*command):
    return subprocess.run(["redis-cli", "-p", os.environ["BACK"], *command], capture_output=True, text=True, check=True).stdout.split()


def swap_values():
    """The values of two payloads change places."""
    for one, two in zip(*(sorted(redis("--scan", "--pattern", f"*{{{os.path.basename(payload(id))}}}*")) for id in "bf")):
        redis("rename", one, "swapped"), redis("rename", two, one), redis("rename", "swapped", two)


front = None
FAULTS = {  # by tier
    # the fault, how it begins, how it ends; or a heading
    "ssd": [
        ("nothing fails", lambda: None, lambda: None),
        ("**the tier's folder**",),
        ("cannot be read: EIO", disk_error(5, SSD), no_disk_error),
        ("may not be read: EACCES", disk_error(13, SSD), no_disk_error),
        ("is stale: ESTALE", disk_error(116, SSD), no_disk_error),
        ("cannot be opened: EMFILE", disk_error(24, SSD), no_disk_error),
        ("is read-only: EROFS", sh("mount -o remount,ro disk"), sh("mount -o remount,rw disk")),
        ("is on a full disk: ENOSPC", sh("head -c 9M /dev/zero >disk/big || true"), sh("rm disk/big")),
        ("was removed", sh(f"rm -r {SSD}"), sh("evp-load m.jsonl --payloads pay --new")),
        ("is on a disk that is not mounted", sh("mkdir away && mount --move disk away"), sh("rm -rf disk/* && mount --move away disk && rmdir away")),
        ("belongs to another user", sh(f"chown nobody {SSD}"), sh(f"chown 0 {SSD}")),
        ("is locked by another program", lock, lambda: lock.file.close()),
        ("**one payload**",),
        ("was removed", lambda: os.remove(payload()), lambda: None),
        ("was cut", lambda: os.truncate(payload(), 5000), lambda: None),
        ("has rotten bytes", damage(payload, 50000), lambda: None),
        ("cannot be read: EIO", disk_error(5, payload), no_disk_error),
        ("was packed again, with the same size", sh("cp pay-2/b.safetensors pay"), lambda: None),
        ("**state, index, manifest, receipt**",),
        ("the state was removed", sh(f"rm {SSD}/evp-state*"), lambda: None),
        ("the state is of an earlier load", sh(f"rm {SSD}/evp-state* && cp -a earlier/evp-state* {SSD}"), lambda: None),
        ("a page of the state was overwritten", damage(f"{SSD}/evp-state", 4096, b"XXXX" * 1024), sh(f"rm {SSD}/evp-state*")),
        ("the index was removed", sh(f"rm {SSD}/evp-index"), lambda: None),
        ("the index was overwritten", damage(f"{SSD}/evp-index", 100), lambda: None),
        ("the manifest was removed", sh("mv m.jsonl kept.jsonl"), sh("mv kept.jsonl m.jsonl")),
        ("the manifest is an earlier one", sh("cp m.jsonl kept.jsonl && cp earlier.jsonl m.jsonl"), sh("mv kept.jsonl m.jsonl")),
        ("the receipt of new payloads cannot be written", sh("cp pay-2/b.safetensors pay && rm m.jsonl.receipt && mkdir m.jsonl.receipt"), sh("rmdir m.jsonl.receipt")),
    ],
    "far": [
        ("nothing fails", lambda: None, lambda: None),
        ("**the Redis server**",),
        ("is away", lambda: front.set("away"), lambda: front.set("pass")),
        ("answers slowly", lambda: front.set("slow"), lambda: front.set("pass")),
        ("does not answer", lambda: front.set("silent"), lambda: front.set("pass")),
        ("never ends an answer", lambda: front.set("endless"), lambda: front.set("pass")),
        ("has another payload's values", swap_values, lambda: None),
        ("lost all values", lambda: redis("flushall"), lambda: None),
    ],
}[TIER]

# ---- the operations ---------------------------------------------------------------------------------------------------


def tried(call, *arguments):
    """`ok`, or the name of the error."""
    start = time.monotonic()
    try:
        call(*arguments)
        said = "ok"
    except evp.Error as e:
        log(f"{call.__name__} {arguments[:2]}: {e}")
        said = CODES.get(e.code, str(e.code))
    return said + (" (slow)" if time.monotonic() - start > 8 else "")


def fetch(store, id):
    """What a server gets for a prompt that begins with a context: `ok` if these are the packed bytes."""
    doing = "find "
    try:
        found = store.find(tokens(id) + [5, 6, 7])
        if not found:
            return "miss"
        doing = ""
        whole = bytes(store.fetch(found))
    except evp.Error as e:
        log(f"{doing or 'fetch '}{id}: {e}")
        return doing + CODES.get(e.code, str(e.code))
    if whole == open(f"pay/{id}.safetensors", "rb").read():
        return "ok"
    return "old" if whole == open(f"pay-1/{id}.safetensors", "rb").read() else "WRONG"


def both(one, two):
    return one if one == two else f"{one}, {two}"


def opened(then):
    try:
        with evp.open("m.jsonl", wait_s=0.2) as store:
            return then(store)
    except evp.Error as e:
        log(f"open: {e}")
        return CODES.get(e.code, str(e.code))


LEGEND = """\
Where a cell has two words, the first is about another tier, the second about the one that fails. Numbers are exit statuses; `io`,
`gone` and so on are error codes of libevicpress. `fetch` is evp_find() and evp_fetch(): `ok` if the bytes are the packed ones, `old`
if they are those packed before, `miss` if nothing is found. The first two columns are of a process that opened the tiers before the
fault, the next two of another that opens them now; then come the tools, `evp-load --verify` and what is fetched after it. evp_put(),
evp_move() to and from the tier, and evp_remove() were tried on their own. The last column is the load after the fault: its exit
status, and the contexts that are not back.
"""
COLUMNS = ["refresh", "fetch", "open", "fetch", "evp-show", "--check", "evp-plan", "evp-pack", "evp-load --dry-run", "evp-load", "fetch", "put", "move",
           "remove", "evp-load after the fault"]


def looks(running):
    """The cells of what reads, and of a load."""
    tiers = lambda store: both(*("ok" if t.code == 0 else CODES.get(t.code, str(t.code)) for t in store.tiers()))
    fetched = lambda store: both(fetch(store, "a"), fetch(store, "b"))
    load = ["evp-load", "m.jsonl", "--payloads", "pay", "-q", "--verify"]
    yield tried(running.refresh)
    yield fetched(running)
    yield opened(tiers)
    yield opened(fetched)
    yield both(*(run("evp-show", tier) for tier in SHOWN))
    yield both(*(run("evp-show", "--check", tier) for tier in SHOWN))
    yield run("evp-plan", "table.h5", "--tiers", "tiers.json", "--previous", "m.jsonl", "-q", "-o", "next.jsonl")
    yield run("evp-pack", *MODEL, "m.jsonl", "c.jsonl", "--tiers", "tiers.json", "-o", "packed", "-q")
    yield run(*load, "--dry-run")
    yield run(*load)
    yield opened(fetched)


def changes():
    """The cells of what else changes tiers."""
    file = lambda id: open(f"pay-1/{id}.safetensors", "rb").read()
    yield opened(lambda s: both(tried(s.put, "c", "dram", file("c")), tried(s.put, "d", TIER, file("d"))))
    yield opened(lambda s: both(tried(s.move, "e", TIER), tried(s.move, "f", "dram")))
    yield opened(lambda s: both(tried(s.remove, "g"), tried(s.remove, "h")))


def healed():
    """The status of the first load after the fault, and which contexts are not where the manifest puts them."""
    status = run("evp-load", "m.jsonl", "--payloads", "pay", "-q", "--verify")
    lost = opened(lambda s: [id for id in OTHER + FAILING if fetch(s, id) != "ok" or s.find(tokens(id)).tier != ("dram" if id in OTHER else TIER)])
    bad = [tier for tier in SHOWN if run("evp-show", "--check", tier)]
    return f"{status}, lost: {' '.join(lost)}" if lost else f"{status}, {len(bad)} bad tiers" if bad else str(status)


def fresh():
    """A store with the contexts in place, and a copy of its state from a load before."""
    sh("umount disk; rm -rf dram far packed earlier pay fault away kept.jsonl *.jsonl.receipt && mkdir -p disk far earlier && cp -r pay-1 pay &&"
       "mount -t tmpfs -o size=8m tmpfs disk")()
    if TIER == "far":
        redis("flushall")
    write_manifest("earlier.jsonl", TIER, OTHER + "bd", "insert")
    assert run("evp-load", "earlier.jsonl", "--payloads", "pay", "-q") == 0, said
    sh(f"cp -a {SHOWN[1]}/evp-state* earlier")()
    write_manifest("m.jsonl", TIER, OTHER + FAILING, "keep")
    assert run("evp-load", "m.jsonl", "--payloads", "pay", "-q") == 0, said


def one(number):
    global front
    what, begin, end = FAULTS[number]
    log(f"\n==== {what}")
    if TIER == "far":
        front = Front(int(os.environ["FRONT"]), int(os.environ["BACK"]))
    fresh()
    with evp.open("m.jsonl", wait_s=0.2) as running:
        begin()
        cells = list(looks(running))
    end()
    after = healed()
    fresh()
    begin()
    cells += changes()
    end()
    print("|", " | ".join(map(str, [what, *cells, both(after, healed())])), "|")


def main():
    make_inputs()
    print(LEGEND + "\n|", " | ".join(["", *COLUMNS]), "|\n|", " | ".join(["---"] * (len(COLUMNS) + 1)), "|", flush=True)
    preload = {**os.environ, "FAULT": f"{W}/fault", "LD_PRELOAD": f"{W}/faults.so" if TIER == "ssd" else ""}
    for number, (what, *_) in enumerate(FAULTS):
        if not _:
            print("|", what, "|" * (len(COLUMNS) + 1), flush=True)
            continue
        try:
            row = subprocess.run(["unshare", "-m", sys.executable, __file__, TIER, str(number)], env=preload, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, timeout=30).stdout
        except subprocess.TimeoutExpired:
            row = f"| {what} | hangs |\n"
        print(row, end="", flush=True)


one(int(sys.argv[2])) if sys.argv[2:] else main()
