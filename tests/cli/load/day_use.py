"""day_use.py FOLDER - engines tell one live plan what came, and are killed. `engine` as second argument: one of them."""
import ctypes, json, os, random, subprocess, sys, threading, time

import evp
from evp import day, engine

MANIFEST, PLAN = (os.path.join(sys.argv[1], name) for name in ("m.jsonl", "day.jsonl"))
DIGEST = "0123456789abcdef" * 4


def put(store, said, tokens):
    rows = [(ctypes.c_uint16 * (said["n"] * 64))(*(random.randrange(1 << 14) for _ in range(said["n"] * 64))) for _ in "kv"]
    store.put(said["id"], said["tier"], evp.encode(said["config"], tokens[:said["n"]], [ctypes.addressof(row) for row in rows],
                                                   (1, 1, 64), "bf16", model_digest=DIGEST))


def one_engine():
    engine.logger.addHandler(engine.logging.StreamHandler(sys.stdout))
    store, mine, day.PUT_S = evp.open(MANIFEST), day.Day(PLAN, MANIFEST), 0
    for line in sys.stdin:
        what = json.loads(line)
        if "do" in what:
            try:
                print("done", exec(what["do"], {"mine": mine, "os": os, "time": time}), flush=True)
            except EOFError:
                print("not answered", flush=True)
            continue
        said, answered = [], threading.Event()
        store.refresh()
        found = store.find(what["tokens"])
        mine.used(what["tokens"], found.n_tokens if found else 0, lambda one: (said.append(one), answered.set()))
        answered.wait(30)
        if said[0] and what.get("put", True):
            put(store, said[0], what["tokens"])
        if what.get("gone"):
            mine._ask(json.dumps({"lost": found.token_digest}).encode())
        if what.get("lost"):
            mine.lost(said[0]["id"])
        print(found.n_tokens if found else 0, said[0].get("id", "-")[:8], said[0].get("n", "-"), said[0].get("config", "-"), flush=True)


class Engine:
    def __init__(self):
        self.process = subprocess.Popen([sys.executable, __file__, sys.argv[1], "engine"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def tell(self, **what):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def kill(self):
        self.process.kill()
        self.process.wait()


def prompt(text, question, n=500):
    return [100000 * text + i for i in range(n)] + [7000 + 100 * question + i for i in range(40)]


def main():
    a, b = Engine(), Engine()
    print("known, read:", a.tell(tokens=[1000 * ord("a") + i for i in range(320)]))
    print("known, computed and in no tier:", a.tell(tokens=[1000 * ord("d") + i for i in range(190)]))
    print("new:", a.tell(tokens=prompt(1, 1)))
    print("again:", a.tell(tokens=prompt(1, 2)))
    print("and again:", a.tell(tokens=prompt(1, 3)))
    print("the other engine, new:", b.tell(tokens=prompt(2, 1)), "; again:", b.tell(tokens=prompt(2, 2)))
    print("modes:", *(oct(os.stat(PLAN + end).st_mode & 0o777) for end in ("", ".lock", ".sock")))
    a.kill()
    print("the owner is killed:", b.tell(tokens=prompt(1, 4)), "; new:", b.tell(tokens=prompt(3, 1)))
    print("again, and not put:", b.tell(tokens=prompt(3, 2), put=False))
    print("computed again:", b.tell(tokens=prompt(3, 3), put=False, lost=True))
    print("lost, and computed again:", b.tell(tokens=prompt(3, 4)), "; then:", b.tell(tokens=prompt(3, 5)))
    print("damaged:", b.tell(tokens=prompt(3, 6), gone=True), "; then:", b.tell(tokens=prompt(3, 7)))
    b.tell(do="for tier in mine.owner.tiers.values(): tier['write_bytes_per_s'] = 1e5")
    print("a slow tier, new:", b.tell(tokens=prompt(4, 1)), "; again:", b.tell(tokens=prompt(4, 2)),
          "; is busy for a second:", b.tell(do="print(0.1 < max(mine.owner.busy.values()) - time.monotonic() < 2, end=' ')"))
    b.tell(do="mine.owner.busy = dict.fromkeys(mine.owner.tiers, time.monotonic() + 1000)")
    print("while all are busy:", b.tell(tokens=prompt(5, 1)), "; again:", b.tell(tokens=prompt(5, 2)))
    a = Engine()
    print("another user:", a.tell(do="os.geteuid = lambda: 4711"), a.tell(tokens=prompt(6, 1)), a.process.stdout.readline().strip())
    a.kill()
    a = Engine()
    for garbage in "?", "[]", '{"found": "x", "store": 1}\\n1234':
        print("garbage:", a.tell(do=f"mine._ask(b'{garbage}')"), b.tell(tokens=[1]))
    b.kill()


one_engine() if len(sys.argv) > 2 else main()
