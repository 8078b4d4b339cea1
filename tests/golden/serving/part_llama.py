"""part_llama.py MODEL FOLDER [MODE...] - llama-server's answers from placed contexts, through evp.llama, are those of
reference.py; its sums are others, so a share of them is enough.

f16, bf16, q8_0: the answers with a cache of this type, under every config. bytes: evp.slot writes a server's slots again to
the byte, and layer 0 in every type. faults: what is damaged, full or killed, with the real server. speed: figures."""
import http.client, json, os, random, resource, shutil, signal, socket, subprocess, sys, tempfile, threading, time
from types import SimpleNamespace

import numpy as np

import evp
import evp.gguf
import evp.slot

sys.path[0] = HERE = os.path.dirname(os.path.abspath(__file__))
from reference import chosen, compare, prompts

MODES = ("f16", "bf16", "q8_0", "bytes", "faults")
NEW, SHARE, STOP = 24, 0.85, (0, 2)  # tokens of an answer, share that must agree, ids that end an answer
KEEPS_ALL = ("none", "kivi:bits=4", "kivi:bits=2")
failures = 0


def check(what, fine):
    global failures
    failures += not fine
    print("  " + what + ":" if fine else "FAIL " + what + ":", "yes" if fine else "no", flush=True)


def program(name):
    folder = subprocess.run([os.path.join(HERE, "llama-server")], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    return os.path.join(folder, name)


def gguf(work):
    """The default model in f32: the weights that the reference has."""
    models = os.environ.get("EVP_MODELS") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
                                                         "evp/models")
    path = os.path.join(work, "model.gguf")
    subprocess.run([program("llama-quantize"), "--allow-requantize", models + "/SmolLM2-135M-Instruct.Q4_1.gguf", path, "F32"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return path


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ask(port, path, body=None, timeout=600):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body),
                           {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.loads(response.read() or b"null")
    finally:
        connection.close()


class Server:
    """llama-server with a cache of a type, and its folder of slots."""

    def __init__(self, model, work, kind, *more, flash="on"):
        self.slots, self.port = tempfile.mkdtemp(dir=work), free_port()
        self.command = [program("llama-server"), "-m", model, "--port", str(self.port), "--slot-save-path", self.slots + "/",
                        "-c", "8192", "-np", "4", "-ctk", kind, "-ctv", kind, "-fa", flash, "-t", "1", "-tb", "1", *more]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while self.process.poll() is None:
            try:
                if ask(self.port, "/health")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise RuntimeError("llama-server did not start")

    def alive(self):
        return self.process.poll() is None

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def slot(self, ids, name):
        """The bytes of slot 0 after a prompt."""
        ask(self.port, "/completion", {"prompt": ids, "n_predict": 1, "id_slot": 0, "temperature": 0})
        assert ask(self.port, "/slots/0?action=save", {"filename": name})[0] == 200
        return os.path.join(self.slots, name)


class Proxy:
    def __init__(self, server, manifest, name, **more):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "evp.llama", "--server", f"http://127.0.0.1:{server.port}", "--slots", server.slots,
             "--manifest", manifest, "--model-name", name, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True, **more)
        self.port = int(self.process.stdout.readline().rsplit(":")[-1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()

    def ask(self, ids, **more):
        """The answer's ids and how many tokens of the prompt were not computed."""
        status, answer = ask(self.port, "/completion", {"prompt": ids, "n_predict": NEW, "temperature": 0, "top_k": 1,
                                                        "return_tokens": True, **more})
        return (answer["tokens"], answer["timings"]["cache_n"]) if status == 200 else (None, 0)


def cut(answer):
    """A reference answer as the server ends it."""
    n = next((i for i, t in enumerate(answer["ids"]) if t in STOP), NEW)
    return {key: answer[key][:min(n, NEW)] for key in ("ids", "margins")}


def configs(folder):
    for name in sorted(os.listdir(os.path.join(folder, "tiers"))):
        yield name, os.path.join(folder, f"{name}.jsonl")


def model_name(manifest):
    with evp.open(manifest) as store, store.payload(store.list()[0]) as payload:
        return payload.text("model_name")


def answers(model, folder, work, kind):
    prompt, given = prompts(folder)
    context = {q["id"]: len(given["contexts"][q["context"]]) for q in given["questions"]}
    with open(os.path.join(folder, "answers.json")) as f:
        reference = json.load(f)
    good = asked = 0
    with Server(model, work, kind) as server:
        for name, manifest in configs(folder):
            config = next(c for c in reference if c.translate(str.maketrans(":=+.", "____")) == name)
            n = same = hit = 0
            with Proxy(server, manifest, model_name(manifest)) as proxy:
                for question in [q for q in chosen(config, given["questions"]) if q in reference[config]]:
                    got, cached = proxy.ask(prompt[question])
                    wanted = cut(reference[config][question])
                    got = [t for t in got if t not in STOP]
                    n, hit, same = n + 1, hit + (cached >= context[question]), same + (got == wanted["ids"] or compare(got, wanted)[1])
            print(f"  {kind} {config}: {same} of {n} answers agree, {hit} of {n} hits", flush=True)
            check(f"{kind} {config}: all hit", hit == n)
            good, asked = good + same, asked + n
    check(f"{kind}: {good} of {asked} answers agree, {SHARE:.0%} are enough", good >= SHARE * asked)


class Saved:
    """Rows of a slot file in f32, or in a type that f32 holds, as those of a payload."""

    def __init__(self, path, types={0: "<f4", 1: "<f2"}):
        self.template = t = evp.slot.Template(path)
        self.shape = SimpleNamespace(n_layers=len(t.k), n_heads=1, n_tokens=t.n_tokens, n_rows=t.n_cells, head_dim=0)
        data, at, self.data = np.fromfile(path, np.uint8), 12 + 4 * (t.n_tokens + 4) + 8 + 12 * t.n_cells + 16, {}
        self.tokens = data[24:24 + 4 * t.n_tokens].view("<i4").tolist()
        for side, heads in ("k", t.k), ("v", t.v):
            for layer, head in enumerate(heads):
                at += 12
                size = t.n_cells * (head[1] * head[2] if len(head) > 2 else head[1])
                raw = data[at:at + size]
                x = (raw.view("<u2").astype("<u4") << 16).view("<f4") if head[0] == 30 else raw.view(types[head[0]])
                x = x.reshape(-1, t.n_cells).T if len(head) > 2 else x.reshape(t.n_cells, -1)
                self.data[side, layer] = x.astype("<f4")
                at += size
        self.shape.head_dim = x.shape[1]

    def rows(self, layer, side, into, type, strides, pairs):
        x = self.data[side, layer]
        kind = {"f32": "<f4", "f16": "<f2", "bf16": "<u2"}[type]
        if type == "bf16":
            words = np.ascontiguousarray(x).view("<u4")
            x = (words + 0x7fff + (words >> 16 & 1)) >> 16
        to = np.frombuffer(into, kind)
        at = np.add.outer(np.arange(x.shape[0]) * strides[1], np.arange(x.shape[1]) * strides[2])
        to[at] = x.astype(kind)


def layer_0(path):
    """Rows of K and V of layer 0."""
    t = evp.slot.Template(path)
    with open(path, "rb") as f:
        data = f.read()
    at = 12 + 4 * (t.n_tokens + 4) + 8 + 12 * t.n_cells + 16
    sizes = [t.n_cells * (h[1] * h[2] if len(h) > 2 else h[1]) for h in t.k + t.v]
    v = at + sum(12 + s for s in sizes[:len(t.k)])
    return data[:at], data[at:at + 12 + sizes[0]], data[v:v + 12 + sizes[len(t.k)]]


def same_bytes(model, folder, work):
    _, given = prompts(folder)
    ids = next(iter(given["contexts"].values()))[:200]
    rows = None
    for kind, flash in (("f32", "on"), ("f16", "on"), ("bf16", "on"), ("q8_0", "on"), ("f32", "off"), ("f16", "off")):
        what = f"{kind}, flash attention {flash}"
        with Server(model, work, kind, flash=flash) as server:
            path, out = server.slot(ids, "own.bin"), os.path.join(server.slots, "out.bin")
            template = evp.slot.Template(path)
            rows = rows or Saved(path)
            if kind != "q8_0":
                saved = Saved(path)
                evp.slot.write(out, saved, saved.tokens, template, False, sync=False)
                with open(path, "rb") as a, open(out, "rb") as b:
                    check(f"{what}: the slot written again is the same", a.read() == b.read())
            evp.slot.write(out, rows, rows.tokens, template, False, sync=False)
            ours, own = (np.frombuffer(b"".join(layer_0(p)), np.int8).astype(int) for p in (out, path))
            apart = np.abs(ours - own)  # sums of a rotation have another order: a code may be rounded to its neighbour
            check(f"{what}: layer 0 from f32 rows is the server's own, but {(apart > 0).sum()} of {len(own)} bytes",
                  apart.max() <= (kind == "q8_0") and (apart > 0).mean() <= 1e-4)


def placed_copy(folder, work, name="none"):
    """A manifest and its tier, to be damaged."""
    tier, manifest = os.path.join(work, "tier"), os.path.join(work, "manifest.jsonl")
    shutil.rmtree(tier, ignore_errors=True)
    with open(os.path.join(folder, f"{name}.jsonl")) as f:
        text = f.read().replace(os.path.abspath(os.path.join(folder, "tiers", name)), tier)
    with open(manifest, "w") as f:
        f.write(text)
    subprocess.run(["evp-load", "-q", "--payloads", os.path.join(folder, "payloads"), manifest], check=True)
    return manifest, [os.path.join(x[0], n) for x in os.walk(tier) if "evp-payloads" in x[0] for n in x[2]]


def faults(model, folder, work):
    prompt, given = prompts(folder)
    first, second = given["questions"][0], given["questions"][4]
    ids, T = prompt[first["id"]], len(given["contexts"][first["context"]])
    other, U = prompt[second["id"]], len(given["contexts"][second["context"]])
    manifest, files = placed_copy(folder, work)
    name = model_name(manifest)
    with Server(model, work, "f16", "--cache-ram", "0") as server, Proxy(server, manifest, name) as proxy:
        _, own = ask(server.port, "/completion", {"prompt": ids, "n_predict": NEW, "temperature": 0, "return_tokens": True,
                                                  "id_slot": 3, "cache_prompt": False})
        answer, cached = proxy.ask(ids)
        check("a hit", cached == T)

        def fine(what, hit, ids=ids, T=T):
            got, cached = proxy.ask(ids)
            check(what, got is not None and (cached >= T) == hit and server.alive() and os.listdir(server.slots) == [])
            return got

        def forget():
            for slot in range(4):
                ask(server.port, f"/slots/{slot}?action=erase", {})

        forget()
        check("slots erased: the same answer", fine("slots erased: restored again", True) == answer)
        for file in files:
            os.rename(file, file + ".away")
        forget()
        check("payloads removed: the server's answer", fine("payloads removed: computed", False) == own["tokens"])
        for file in files:
            with open(file + ".away", "rb") as f, open(file, "wb") as g:
                data = bytearray(f.read())
                data[len(data) // 2] ^= 0x40
                g.write(data)
        forget()
        check("payloads damaged: the server's answer", fine("payloads damaged: computed", False) == own["tokens"])
        for file in files:
            os.rename(file + ".away", file)
        forget()
        fine("payloads back", True)
        server.stop(signal.SIGKILL)
        check("server killed: 502", ask(proxy.port, "/completion", {"prompt": ids})[0] == 502)
        server.start()
        fine("server started again", True)
        server.stop(signal.SIGKILL)
        server.command[server.command.index("-ctk") + 1] = server.command[server.command.index("-ctv") + 1] = "bf16"
        server.start()
        proxy.ask(ids)
        fine("server started again with another cache", True)
        loads = threading.Event()

        def load():
            while not loads.is_set():
                subprocess.run(["evp-load", "-q", "--verify", "--payloads", os.path.join(folder, "payloads"), manifest])
        loader, got = threading.Thread(target=load), []
        loader.start()
        with Proxy(server, manifest, name) as twin:
            def client(i):
                p, (what, n) = (proxy, twin)[i % 2], ((ids, T), (other, U))[i // 2 % 2]
                got.append((i // 2 % 2, *p.ask(what)))
            clients = [threading.Thread(target=client, args=(i,)) for i in range(12)]
            [c.start() for c in clients], [c.join() for c in clients]
        loads.set(), loader.join()
        good = {0: (answer, own["tokens"])}
        check("two proxies, 12 clients, evp-load beside them", len(got) == 12 and all(tokens for _, tokens, _ in got))
        check("their answers", all(tokens in good[0] for i, tokens, _ in got if i == 0))
        body = json.dumps({"prompt": ids + [5] * 200, "n_predict": 300, "stream": True}).encode()
        for _ in range(20):
            s = socket.create_connection(("127.0.0.1", proxy.port))
            s.sendall(b"POST /completion HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            time.sleep(random.random() / 4)
            s.close()
        fine("20 clients that left", True)
        template = server.slot(ids[:4], "template.bin")
        data, refused = open(template, "rb").read(), 0
        for n in sorted(random.Random(1).sample(range(len(data)), 50)):
            with open(template, "wb") as f:
                f.write(data[:n])
            try:
                evp.slot.Template(template)
            except evp.slot.Refused:
                refused += 1
        os.unlink(template)
        check("50 templates that were cut are refused", refused == 50)
    with Server(model, work, "f16", "--cache-ram", "0", "-np", "1") as server, \
            Proxy(server, os.path.join(folder, "snapkv_drop_0_5.jsonl"), name) as proxy:
        part = {"prompt": ids[:T // 2] + other[U:], "n_predict": NEW, "temperature": 0, "return_tokens": True}
        _, own_part = ask(server.port, "/completion", dict(part, cache_prompt=False))
        check("dropped tokens: a hit", proxy.ask(ids)[1] == T)
        _, got = ask(proxy.port, "/completion", part)
        check("a prompt that shares half of the context is computed whole",
              got["timings"]["cache_n"] == 0 and got["tokens"] == own_part["tokens"])
    full = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    with Server(model, work, "f16") as server, Proxy(server, manifest, name, preexec_fn=full) as proxy:
        got, cached = proxy.ask(ids)
        check("disk full: computed", got == own["tokens"] and cached == 0 and os.listdir(server.slots) == [])


def speed(model, folder, work):
    prompt, given = prompts(folder)
    longest = max(given["questions"], key=lambda q: len(prompt[q["id"]]))
    ids, context = prompt[longest["id"]], given["contexts"][longest["context"]]
    manifest = os.path.join(folder, "none.jsonl")
    with Server(model, work, "f16") as server:
        template = evp.slot.Template(server.slot(ids[:4], "template.bin"))
        ours, plain, path = [], [], os.path.join(server.slots, "x.bin")
        with evp.open(manifest) as store, store.payload(store.find(ids)) as payload:
            for _ in range(15):
                t = time.monotonic()
                size = evp.slot.write(path, payload, context, template, True)
                ours.append(time.monotonic() - t)
                os.unlink(path)
                data = os.urandom(size)
                t = time.monotonic()
                with open(path, "wb") as f:
                    f.write(data)
                    f.flush()
                    os.fsync(f.fileno())
                plain.append(time.monotonic() - t)
                os.unlink(path)
        print(f"  slot file of {size >> 20} MiB: {min(ours) * 1e3:.0f} ms, a plain write and fsync {min(plain) * 1e3:.0f} ms, "
              f"ratio {min(plain) / min(ours):.2f}")
        def first_token(port, **more):
            t = time.monotonic()
            ask(port, "/completion", {"prompt": ids, "n_predict": 1, "temperature": 0, **more})
            return time.monotonic() - t
        with Proxy(server, manifest, model_name(manifest)) as proxy:
            first_token(proxy.port)
            held, restored, computed = [], [], []
            for _ in range(5):
                held.append(first_token(proxy.port))
                for slot in range(4):
                    ask(server.port, f"/slots/{slot}?action=erase", {})
                restored.append(first_token(proxy.port))
                computed.append(first_token(server.port, cache_prompt=False, id_slot=3))
        print(f"  first token after {len(ids)} tokens: computed {min(computed) * 1e3:.0f} ms, restored {min(restored) * 1e3:.0f} "
              f"ms, held {min(held) * 1e3:.0f} ms")


def main():
    _, folder, *modes = sys.argv[1:]
    with tempfile.TemporaryDirectory() as work:
        model = gguf(work)
        for mode in modes or MODES:
            print("llama-server,", mode, flush=True)
            if mode in ("f16", "bf16", "q8_0"):
                answers(model, folder, work, mode)
            else:
                {"bytes": same_bytes, "faults": faults, "speed": speed}[mode](model, folder, work)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
