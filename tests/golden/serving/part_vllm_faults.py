"""part_vllm_faults.py MODEL FOLDER [MODE] - vLLM's answers while tiers fail and requests go: the engine's own or those of
the payload, nothing else, and no process dies. files: a late manifest, payloads damaged, removed, moved and exchanged.
drop: preempted and aborted requests with dropped tokens, and the next owners of their pages. redis: a server that is
paused, killed and started again. Without MODE: each in its own process."""
import json, os, shutil, signal, socket, subprocess, sys, tempfile, threading, time

sys.path[0] = os.path.dirname(os.path.abspath(__file__))
import part_vllm
from part_vllm import Engine, check
from reference import prompts

MODES = ("files", "drop", "redis")
N, LONG = 24, 110  # tokens of an answer; of one that needs another block for each of two contexts


def place(folder, work, name, config_file, n_contexts=3, tier=None, **changes):
    """Places the shortest contexts of a config on a tier of their own: writes and loads work/NAME.jsonl."""
    with open(os.path.join(folder, f"{config_file}.jsonl")) as f:
        head, *rows, _ = map(json.loads, f)
    head["tiers"][0].update({"uri": os.path.join(work, "tier"), **changes})
    if tier:
        head["tiers"] += [dict(head["tiers"][0], name="second", uri=tier)]
    rows = sorted(rows, key=lambda row: row["n_tokens"])[:n_contexts]
    for row in rows:
        row["tier"] = "second" if tier else "disk"
    with open(os.path.join(work, f"{name}.jsonl"), "w") as f:
        for row in [head] + sorted(rows, key=lambda row: row["id"]) + [{"end": True, "rows": len(rows)}]:
            f.write(json.dumps(row) + "\n")
    load(folder, work, name)
    return [row["id"] for row in rows]


def load(folder, work, name):
    subprocess.run(["evp-load", "-q", "--payloads", os.path.join(folder, "payloads"), os.path.join(work, f"{name}.jsonl")],
                   check=True)


def asked(folder, ids):
    prompt, given = prompts(folder)
    return [prompt[f"{one}-1"] for one in ids]


def own(engine, todo, n=N):
    """The engine's own answers."""
    engine.connector.scheduler.serves = False
    out = [engine.ask([ids], n)[0][0] for ids in todo]
    engine.connector.scheduler.serves = True
    engine.forget()
    return out


def files(model, folder):
    work = tempfile.mkdtemp(dir=folder)
    ids = place(folder, work, "one", "kivi_bits_2")
    todo = asked(folder, ids)
    engine = Engine(model, work, None)
    check("no manifest yet", engine.ask(todo[:1], 1)[0][1] == 0)
    mine, ours = own(engine, todo), []
    engine.use("one")
    for one in todo:
        ours.append(engine.ask([one], N)[0][0])
        engine.forget()
    check("kivi at 2 bits answers like the engine: this test would see nothing", mine != ours)

    def all_fine(what, want=None):
        engine.forget()
        got = [answer for answer, _ in engine.ask(todo, N)]
        check(f"{what}: neither the engine's nor ours", all(g in pair for g, pair in zip(got, zip(mine, ours))))
        check(f"{what}: {[g == m for g, m in zip(got, mine)]} are the engine's", want is None or got == want)

    all_fine("whole", ours)
    payloads = [os.path.join(at, f) for at, _, some in os.walk(os.path.join(work, "tier", "evp-payloads")) for f in some]
    saved = {path: open(path, "rb").read() for path in payloads}
    for path, data in saved.items():
        with open(path, "r+b") as f:
            f.seek(len(data) // 2)
            f.write(bytes([data[len(data) // 2] ^ 1]))
    all_fine("damaged", mine)
    for path in saved:
        os.remove(path)
    all_fine("removed", mine)
    for path, data in saved.items():
        with open(path, "wb") as f:
            f.write(data)
        os.chmod(path, 0o600)
    all_fine("put back", ours)
    os.makedirs(os.path.join(work, "other"))
    place(folder, work, "two", "kivi_bits_2", tier=os.path.join(work, "other"))
    load(folder, work, "one")
    stop = threading.Event()

    def move():
        while not stop.is_set():
            for name in "two", "one":
                load(folder, work, name)
                shutil.copy(os.path.join(work, f"{name}.jsonl"), engine.manifest + ".new")
                os.replace(engine.manifest + ".new", engine.manifest)

    mover = threading.Thread(target=move)
    mover.start()
    for i in range(6):
        all_fine(f"moved while they are loaded, {i}")
    stop.set()
    mover.join()
    engine.use("one")
    time.sleep(2)
    all_fine("after the moves", ours)
    print("vllm: files: a late manifest; 6 rounds beside evp-load; damaged, removed, put back", flush=True)
    engine.close()
    shutil.rmtree(work)


def drop(model, folder):
    from vllm import SamplingParams

    work = tempfile.mkdtemp(dir=folder)
    ids = place(folder, work, "one", "snapkv_drop_0_5", 2)
    todo = asked(folder, ids)
    engine = Engine(model, work, "one", dropped=True, num_gpu_blocks_override=12, block_size=128, max_model_len=1280)
    ordinary = [one[5:205] for one in todo]
    mine, alone = own(engine, ordinary), [engine.ask([one], LONG)[0][0] for one in todo]
    loaded = []
    real = engine.connector.scheduler.allocated
    engine.connector.scheduler.allocated = lambda request, blocks, n: (loaded.append(n), real(request, blocks, n))
    got = [answer for answer, _ in engine.ask(todo, LONG)]
    n = sum(one > 0 for one in loaded)
    check(f"preempted: {n} loads", n > 2)
    check("preempted", got == alone)
    for one, want in zip(ordinary, mine):  # pages of a dropped request are given to an ordinary one
        engine.ask([todo[0]], 2)
        check("the next owner of marked pages", engine.ask([one], N)[0][0] == want)
    got = engine.ask([todo[0], ordinary[0], todo[1], ordinary[1]], N)
    check("one after another, few pages", [got[1][0], got[3][0]] == mine and got[0][0] == alone[0][:N])
    steps = engine.llm.llm_engine
    for after in 1, 2, 5:
        steps.add_request(f"90{after}", {"prompt_token_ids": todo[0]}, SamplingParams(temperature=0, max_tokens=50))
        for _ in range(after):
            steps.step()
        steps.abort_request([f"90{after}"])
        check(f"aborted after {after} steps", engine.ask([ordinary[0]], N)[0][0] == mine[0])
    engine.ask([ordinary[0][:20]], 2)
    check(f"{engine.blocks_in_use()} blocks are left", engine.blocks_in_use() == 0)
    print(f"vllm: dropped: {n} loads of 2 preempted requests; aborts; pages given on", flush=True)
    engine.close()
    shutil.rmtree(work)


class Redis:
    def __init__(self, work, port):
        self.process = subprocess.Popen(["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly",
                                         "no", "--dir", work], stdout=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return
            except OSError:
                time.sleep(0.1)

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()


def redis(model, folder):
    from vllm import SamplingParams

    if not shutil.which("redis-server"):
        return print("skip: no redis-server")
    work = tempfile.mkdtemp(dir=folder)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    server = Redis(work, port)
    ids = place(folder, work, "one", "kivi_bits_2", kind="redis", uri=f"redis://127.0.0.1:{port}",
                state=os.path.join(work, "state"))
    todo = asked(folder, ids)
    engine = Engine(model, work, "one")
    try:
        redis_faults(engine, server, folder, work, port, todo, SamplingParams)
    finally:
        server.signal(signal.SIGCONT)
        engine.close()
    shutil.rmtree(work)


def redis_faults(engine, server, folder, work, port, todo, SamplingParams):
    mine = own(engine, todo)
    ours = [engine.ask([one], N)[0][0] for one in todo]
    engine.forget()
    steps = engine.llm.llm_engine

    def gaps(wait, also=()):
        """Largest of the seconds between two tokens of an ordinary request, without its first; answers of the others."""
        steps.add_request("ordinary", {"prompt_token_ids": todo[0][7:200]}, SamplingParams(temperature=0, max_tokens=200,
                                                                                           ignore_eos=True))
        while not (out := steps.step()) or not out[0].outputs[0].token_ids:
            pass
        for i, one in enumerate(also):
            steps.add_request(f"stalled-{i}", {"prompt_token_ids": one}, SamplingParams(temperature=0, max_tokens=N,
                                                                                        ignore_eos=True))
        times, begun, answers, paused = [time.monotonic()], time.monotonic(), {}, bool(also)
        while steps.has_unfinished_requests():
            if paused and time.monotonic() > begun + wait:
                server.signal(signal.SIGCONT)
                paused = False
            for one in steps.step():
                if one.finished:
                    answers[one.request_id] = list(one.outputs[0].token_ids)
                elif "ordinary" in one.request_id and (paused or not also):
                    times.append(time.monotonic())
        return max(b - a for a, b in zip(times, times[1:])), len(times), answers

    usual, _, _ = gaps(0)
    server.signal(signal.SIGSTOP)
    stalled, n, answers = gaps(2, todo)
    got = [answer for name, answer in sorted(answers.items()) if "stalled" in name]
    print(f"vllm: a tier stalled for 2 s: longest gap {stalled / usual:.2f} of the usual, over {n} tokens", flush=True)
    check("gaps while a tier stalls", stalled < 2 * usual)
    check("after the stall", all(g in pair for g, pair in zip(got, zip(mine, ours))) and len(got) == len(todo))
    time.sleep(3)
    engine.forget()
    check("after the pause", [a for a, _ in engine.ask(todo, N)] == ours)
    engine.forget()
    server.kill()
    check("killed", [a for a, _ in engine.ask(todo, N)] == mine)
    server.__init__(work, port)
    engine.forget()
    check("started again, empty", [a for a, _ in engine.ask(todo, N)] == mine)
    load(folder, work, "one")
    until = time.monotonic() + 120
    got = None
    while got != ours and time.monotonic() < until:
        time.sleep(3)
        engine.forget()
        got = [a for a, _ in engine.ask(todo, N)]
    check("loaded again", got == ours)
    print("vllm: redis: paused, killed, started again, loaded again", flush=True)
    server.kill()


if __name__ == "__main__":
    if len(sys.argv) == 3:
        sys.exit(any([subprocess.run([sys.executable, __file__, *sys.argv[1:], mode]).returncode for mode in MODES]))
    globals()[sys.argv[3]](*sys.argv[1:3])
    sys.exit(part_vllm.failures > 0)
