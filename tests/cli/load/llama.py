"""llama.py MANIFEST MODEL - evp.llama in front of a server that pretends to be llama-server with two slots."""
import array, http.client, http.server, json, os, shutil, socket, struct, subprocess, sys, threading, time

import evp
import evp.llama
import evp.slot

manifest, model = sys.argv[1:]
store = evp.open(manifest)
os.mkdir("slots")


class Llama(http.server.ThreadingHTTPServer):
    """What it was asked; slots: the tokens of each; refuse: paths that are answered with 400; cut: saved files are not whole."""
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked, self.restored, self.refuse, self.cut, self.overlaps, self.slow = [], [], (), False, 0, 0
        self.lock, self.tasks, self.adapters, self.aborted = threading.Lock(), 0, [], threading.Event()
        self.restart()

    def restart(self):
        self.slots = [{"id": i, "id_task": 0, "tokens": [], "is_processing": False} for i in range(2)]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def say(self, status, value, stream=False):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("X-Own", "kept")
        if not stream:
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            return self.wfile.write(body)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in b'data: {"content":"a"}\n\n', b"data: " + body + b"\n\n", b"data: [DONE]\n\n":
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.flush()
            time.sleep(0.01)
        self.wfile.write(b"0\r\n\r\n")

    def do_GET(self):
        s = self.server
        path = self.path.split("?")[0]
        if path in s.refuse:
            return self.say(400, {"error": "refused"})
        if path == "/props":
            return self.say(200, {"model_path": model, "build_info": "b1", "total_slots": 2,
                                  "default_generation_settings": {"n_ctx": 4096}})
        if path == "/slots":
            return self.say(200, [{**t, "tokens": 0, "n_prompt_tokens": len(t["tokens"])} for t in s.slots])
        self.say(200, s.adapters if path == "/lora-adapters" else {"path": self.path})

    def do_POST(self):
        s, data = self.server, self.rfile.read(int(self.headers["Content-Length"]))
        if self.path in s.refuse:
            return self.say(400, {"error": "refused"})
        if self.path == "/tokenize":
            return self.say(200, {"tokens": [int(i) for i in json.loads(data)["content"].split()]})
        if self.path == "/apply-template":
            return self.say(200, {"prompt": json.loads(data)["messages"][0]["content"]})
        if self.path.startswith("/slots/"):
            return self.slot(int(self.path[7:].split("?")[0]), self.path.endswith("save"), json.loads(data)["filename"])
        s.asked.append(data)
        try:
            body = json.loads(data)
            self.complete(body)
        except (ValueError, RecursionError):
            self.say(400, {"error": "not JSON"})

    def slot(self, number, save, name):
        s, path = self.server, "slots/" + name
        if save:
            rows = struct.pack("<iQ", 1, 32) + bytes(4 * 32)
            cells = b"".join(struct.pack("<iIi", i, 1, number) for i in range(4))
            data = struct.pack("<III8i", 0x67677371, 4, 8, -1, 1, 4, 1, 2, 3, 4, 0) + struct.pack("<III", 2, 0, 4) + cells
            data += struct.pack("<IIII", 0, 1, 0, 0) + 2 * rows
            with open(path, "wb") as f:
                f.write(data[:-1] if s.cut else data)
            return self.say(200, {"n_saved": 4})
        t = evp.slot.Template(path)  # a real server would abort if it were not whole
        with open(path, "rb") as f:
            f.seek(24)
            s.slots[number]["tokens"] = array.array("i", f.read(4 * t.n_tokens)).tolist()
        s.restored.append((number, t.n_tokens, t.n_cells))
        self.say(200, {"n_restored": t.n_tokens})

    def complete(self, body):
        s, prompt = self.server, body.get("prompt", body.get("messages", [{"content": ""}])[0]["content"])
        tokens = prompt if isinstance(prompt, list) else [int(i) for i in str(prompt).split() if i.isdigit()]
        slot = s.slots[body.get("id_slot", 0) % 2]
        with s.lock:
            s.overlaps += slot["is_processing"] and "id_slot" in body
            slot["is_processing"], s.tasks = True, s.tasks + 1
        held, slot["id_task"], slot["tokens"] = slot["tokens"], s.tasks, tokens
        if s.slow:
            time.sleep(s.slow)
            try:
                if self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b"":
                    s.aborted.set()
            except BlockingIOError:
                pass
        n = evp.llama._shared(held, tokens)
        slot["is_processing"] = False
        self.say(200, {"content": "", "timings": {"cache_n": n}}, body.get("stream", False))

    def log_message(self, *_):
        pass


llama = Llama()
threading.Thread(target=llama.serve_forever, daemon=True).start()
behind = evp.llama.Server(f"http://127.0.0.1:{llama.server_port}")
placed = evp.llama.Placed(behind, "slots", store, tag="test")
told = []
placed.day = type("Day", (), {"used": lambda self, tokens, found: told.append((tokens[:], found))})()
proxy = evp.llama.Proxy(("127.0.0.1", 0), behind, placed)
threading.Thread(target=proxy.serve_forever, daemon=True).start()


def ask(path, body, method="POST", headers={}, port=proxy.server_port):
    """Status, cache_n of the answer or None, text."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    connection.request(method, path, data, headers)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    found = evp.llama.re.findall(r'"cache_n": (\d+)', text)
    return response.status, int(found[-1]) if found else None, text


def tokens_of(prefix):
    with store.payload(prefix) as payload:
        return memoryview(payload.fetch("tokens")).cast("i").tolist()


contexts = [tokens_of(p) for p in store.list()]
first, second = contexts
T = len(first)
text = " ".join(map(str, first + [7]))


def check(what, fine):
    print(what + ":", "yes" if fine else "NO")


def hits():
    status, cached, _ = ask("/completion", {"prompt": first + [7, 8], "n_predict": 4})
    sent = json.loads(llama.asked[-1])
    check("restored, and the slot named", (status, cached, sent["cache_prompt"], llama.restored[-1][1]) == (200, T, True, T))
    check("in the slot it was restored to", sent["id_slot"] == llama.restored[-1][0] and sent["n_predict"] == 4)
    check("a use is told", told[-1] == (first + [7, 8], T))
    n = len(llama.restored)
    check("held already", ask("/v1/completions", {"prompt": text})[1] >= T and len(llama.restored) == n)
    chat = {"messages": [{"role": "user", "content": text}], "stream": True}
    status, cached, body = ask("/v1/chat/completions", chat)
    check("chat, streamed", cached >= T and body.endswith("data: [DONE]\n\n") and len(llama.restored) == n)
    ask("/completion", {"prompt": second + [7]})
    check("another context into the other slot", llama.restored[-1][0] != llama.restored[n - 1][0])
    check("no slot file is left", os.listdir("slots") == [])


def untouched():
    parts = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": "data:"}}]
    same = 0
    for path, body in (("/completion", {"prompt": first + [7], "id_slot": 1}), ("/completion", {"prompt": first + [7], "lora": []}),
                       ("/v1/completions", {"prompt": text, "n": 2}), ("/completion", {"prompt": [9, 9, 9]}),
                       ("/completion", {"prompt": first}), ("/completion", {"prompt": [text, text]}),
                       ("/completion", {"prompt": text, "cache_prompt": False}), ("/completion", b"{nonsense"),
                       ("/completion", b"[" * 100000), ("/v1/chat/completions", {"messages": [{"role": "user", "content": parts}]})):
        n = len(llama.restored)
        ask(path, body)
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        same += llama.asked[-1] == sent and len(llama.restored) == n
    print("uncompressed:", same, "of 10;", ask("/any?x=1", None, "GET")[2])


def goes_on(what, prompt=first):
    before = llama.restored[:]
    sent = json.dumps({"prompt": prompt + [7, 7]}).encode()
    status = ask("/completion", sent)[0]
    check(what, status == 200 and llama.asked[-1] == sent and llama.restored == before)


def again(what, prompt=first):
    n = len(llama.restored)
    check(what, ask("/completion", {"prompt": prompt + [7, 7]})[1] >= T and len(llama.restored) == n + 1)


def faults():
    llama.restart()
    again("slots lost: restored again")
    llama.restart()
    for path in "/slots/0?action=restore", "/slots/1?action=restore", "/tokenize":
        llama.refuse += (path,)
    goes_on("restore refused")
    llama.refuse = ("/slots",)
    goes_on("no list of slots")
    llama.refuse = ()
    os.rename("slots", "away")
    goes_on("no folder for slots")
    os.rename("away", "slots")
    again("folder back")
    llama.restart()
    files = [f"{x[0]}/{name}" for x in os.walk("ssd") if "evp-payloads" in x[0] for name in x[2]]
    for file in files:
        os.rename(file, file.replace("/", "-"))
    goes_on("payload removed")
    for file in files:
        shutil.copy(file.replace("/", "-"), file)
        with open(file, "r+b") as f:
            f.seek(os.path.getsize(file) // 2)
            f.write(bytes(range(256)) * 4)
    goes_on("payload damaged")
    for file in files:
        os.rename(file.replace("/", "-"), file)
    again("payload back")
    llama.adapters = [{"id": 0, "scale": 1.0}]
    goes_on("LoRA adapter")
    llama.adapters, llama.cut, placed.probed = [], True, None
    goes_on("template that was cut")
    llama.cut, placed.probed = False, None
    again("whole template")
    check("no slot file is left", os.listdir("slots") == [])


def clients():
    llama.restart()
    answers = []
    work = [threading.Thread(target=lambda i=i: answers.append(ask("/completion", {
        "prompt": contexts[i % 2] + [i], "stream": i % 3 == 0})[:2])) for i in range(24)]
    [t.start() for t in work], [t.join() for t in work]
    check("24 clients", all(status == 200 and cached >= T for status, cached in answers) and len(answers) == 24)
    check("one request at a time in a slot", llama.overlaps == 0)
    llama.slow = 0.5
    gone = socket.create_connection(("127.0.0.1", proxy.server_port))
    body = json.dumps({"prompt": first + [7]}).encode()
    gone.sendall(b"POST /completion HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    time.sleep(0.2)
    gone.close()
    check("the server learns that a client is gone", llama.aborted.wait(10))
    llama.slow = 0
    check("its slot is free", ask("/completion", {"prompt": first + [7]})[0] == 200)
    big = {"Content-Length": str(1 << 40)}
    print("too large:", ask("/completion", b"", headers=big)[0])
    llama.shutdown(), llama.server_close()
    print("no server:", ask("/completion", {"prompt": first + [7]})[0], ask("/health", None, "GET")[0])


def late():
    """A proxy of its own, whose manifest comes after it and goes again."""
    command = [sys.executable, "-m", "evp.llama", "--server", f"http://127.0.0.1:{llama.server_port}", "--slots", "slots",
               "--manifest", "late.jsonl", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as late:
        port = int(late.stdout.readline().rpartition(":")[2])
        sent = json.dumps({"prompt": first + [7]}).encode()
        for what in "no manifest", "a damaged one":
            status = ask("/completion", sent, port=port)[0]
            check(f"{what}: goes on as it came", status == 200 and llama.asked[-1] == sent)
            with open("late.jsonl", "w") as f:
                f.write('{"evp":')
        shutil.copy(manifest, "late.jsonl")
        for what in "there", "gone":
            llama.restart()
            check(f"the manifest is {what}: restored", ask("/completion", sent, port=port)[1] >= T)
            os.path.exists("late.jsonl") and os.remove("late.jsonl")
        late.terminate()


hits()
untouched()
faults()
late()
clients()
