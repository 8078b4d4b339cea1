"""put-killed.py MANIFEST MANIFEST... - a child puts, moves and removes payloads of the manifests through libevicpress and is
killed, again and again. After each kill readers see whole payloads alone; once the next writer has come, the tiers hold
what the child was told to be done, but for the call that it was in, and nothing else."""
import contextlib, glob, json, os, random, signal, sqlite3, subprocess, sys, time

import evp

KILLS, TIERS = 25, ("dram", "ssd")
random.seed(11)
payloads = {}  # id -> names of its payloads; those called z... are left alone
for manifest in sys.argv[1:]:
    for row in map(json.loads, open(manifest)):
        if row.get("payload") and not row["id"].startswith("z"):
            payloads.setdefault(row["id"], []).append((row["payload"], row["config"], row["n_tokens"]))


def tokens(id, n):
    return [1000 * ord(id[0]) + i for i in range(n)]


def work(log):
    """The child: says what it begins and what it has done."""
    random.seed(os.getpid())
    say = lambda *words: os.write(log, (" ".join(words) + "\n").encode())
    with evp.open(sys.argv[1], wait_s=60) as store:
        while True:
            id, tier, what = random.choice(list(payloads)), random.choice(TIERS), random.choice("ppppmr")
            name, config, _ = random.choice(payloads[id])
            say("begin", id)
            try:
                if what == "p":
                    store.put(id, tier, open(f"pay/{name}", "rb").read())
                    say("done", id, tier, config)
                elif what == "m":
                    store.move(id, tier)
                    say("moved", id, tier)
                else:
                    store.remove(id)
                    say("removed", id)
            except (evp.Full, evp.Unknown):
                say("refused", id)


def ask(tier, query):
    """Rows of a state. The connection is closed: what a fork shares, SQLite gets wrong."""
    with contextlib.closing(sqlite3.connect(f"{tier}/evp-state")) as db:
        return db.execute(f"SELECT {query}").fetchall()


def placed():
    """What the states say: id -> (tier, config)."""
    found = {}
    for tier in TIERS:
        for id, config in ask(tier, "context, config FROM payload"):
            assert id not in found, f"{id} is placed twice"
            found[id] = tier, config
    return found


def follow(expected, lines):
    """Brings what is expected up to date; returns the context of the call that was not ended."""
    doing = None
    for word, id, *more in (line.split() for line in lines if line):
        if word == "begin":
            doing = id
            continue
        doing = None
        if word == "done":
            expected[id] = tuple(more)
        elif word == "moved":
            expected[id] = more[0], expected[id][1]
        elif word == "removed":
            del expected[id]
    return doing


def check_readers(store):
    store.refresh()
    for id in payloads:
        for _, _, n in payloads[id]:
            found = store.find(tokens(id, n))
            try:
                assert not found or len(store.fetch(found)) == found.size
            except evp.Gone:
                pass


def check_settled(expected, doing):
    try:
        with evp.open(sys.argv[1], wait_s=60) as store:
            store.remove("nobody")  # the next writer
    except evp.Unknown:
        pass
    now = placed()
    for id in set(expected) | set(now):
        assert id == doing or expected.get(id) == now.get(id), f"{id}: {expected.get(id)} is {now.get(id)}"
    for tier in TIERS:
        named = {f"{tier}/{file}" for (file,) in ask(tier, "file FROM payload")}
        assert named == set(glob.glob(f"{tier}/evp-payloads/*/*")), f"{tier}: files and names differ"
        ((held,),) = ask(tier, "total(bytes) FROM payload")
        assert tier != "dram" or held <= 120000, f"{tier} holds {held}"
    shown = subprocess.run(["evp-show", "--check", *TIERS], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stdout
    return now


# A context may be placed twice between the moment when its new payload is named and the moment when the old one is not.
def settle_twice(doing):
    if doing:
        with evp.open(sys.argv[1], wait_s=60) as store:
            try:
                store.remove(doing)
            except evp.Unknown:
                pass


def main():
    store, expected, done = evp.open(sys.argv[1]), None, 0
    expected = placed()
    kills = 0
    while kills < KILLS or done < KILLS:  # on a slow machine some children are killed before their first call is done
        kills += 1
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            work(write)
        os.close(write)
        end = time.time() + random.uniform(0.05, 0.5)
        while time.time() < end:
            check_readers(store)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with os.fdopen(read) as log:
            lines = log.read().splitlines()
        done += sum(line.startswith(("done", "moved", "removed")) for line in lines)
        doing = follow(expected, lines)
        check_readers(store)
        settle_twice(doing)
        expected.pop(doing, None)
        expected = check_settled(expected, None)
    print("consistent after all kills")


main()
