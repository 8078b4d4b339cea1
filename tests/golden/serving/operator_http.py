"""operator_http.py MODEL ZIP FOLDER - an operator's day with vLLM: a log of chats about LongBench texts becomes 8 contexts, which
are packed and placed under six configs; clients then ask about them over HTTP.

Held against two oracles: transformers over each payload's rows (reference.py) for what vLLM loads, vLLM without a connector for
what it computes: kvzip and adakv, whose heads keep different numbers of tokens."""
import json, os, socket, subprocess, sys, time, urllib.request, zipfile
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from statistics import mean

sys.path[0] = os.path.dirname(os.path.abspath(__file__))
import reference

SOURCES = {"qasper": "none", "multifieldqa_en": "none", "hotpotqa": "kivi:bits=4", "2wikimqa": "kivi:bits=4",
           "musique": "snapkv:drop=0.5", "gov_report": "tova:drop=0.5", "qmsum": "kvzip:drop=0.5",
           "multi_news": "adakv+snapkv:drop=0.5"}
QUESTIONS = ["What is this text about?", "Which names does the text mention first?", "Summarize the text in one sentence."]
CLIENTS = (1, 4, 8)  # each number asks one of the questions about every context
NOT_HELD = ("kvzip", "adakv")
NEW = reference.NEW = 32
SYSTEM = "You answer questions about a text."
failures = 0


def check(what, fine):
    global failures
    failures += not fine
    if not fine:
        print("FAIL", what, flush=True)


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def body(text, question):
    """Every other text has a system prompt."""
    user = {"role": "user", "content": f"{text}\n\n{question}"}
    return {"messages": [{"role": "system", "content": SYSTEM}, user] if len(text) % 2 else [user]}


def digest(ids):
    return sha256(b"".join(i.to_bytes(4, "little") for i in ids)).hexdigest()


def bytes_of(config, n, about):
    """As /cells/bytes: what the variant takes of a tier."""
    heads, K = about["n_layers"] * about["n_kv_heads"], about["head_width"]
    if "kivi" not in config:
        return heads * (K * 2 * 2 * (n if config == "none" else n // 2) + 4 * config.startswith(NOT_HELD))  # how many rows it has
    k, v = n - n % 32, max(0, n - 32)
    return heads * (sum(m * K // 2 + m * K // 32 * 4 for m in (k, v)) + (n - k + n - v) * K * 2)


def place(model, archive):
    """Returns {source: (id, token ids, text)}, placed by operator.jsonl."""
    texts = {}
    with zipfile.ZipFile(archive) as z:
        for i, source in enumerate(SOURCES):
            text = json.loads(z.read(f"data/{source}.jsonl").splitlines()[i])["context"]
            texts[source] = text[:1600 + 201 * i].strip()
    with open("requests.log", "w") as log:
        for text in texts.values():
            for question in QUESTIONS:
                log.write(json.dumps({"model": "SmolLM2", **body(text, question)}) + "\n")
    run("evp-import", "-q", "--requests", "requests.log", "--model", model, "-o", "mine")
    with open("mine/contexts.jsonl") as rows:
        contexts = [json.loads(row) for row in rows][1:-1]
    about = json.loads(run("evp-show", "--json", model))
    out, rows = {}, []
    for source, text in texts.items():
        one = next(c for c in contexts if text in c["text"])
        ids = [int(i) for i in run("evp-show", "--model", model, "mine/contexts.jsonl", "--ids", one["id"]).split()]
        config, n = SOURCES[source], len(ids)
        out[source] = one["id"], ids, text
        rows.append({"id": one["id"], "token_digest": digest(ids), "n_tokens": n, "config": config, "tier": "disk", "bytes": bytes_of(config, n, about),
                     "quality": 1, "utility": 1, "frequency": 1, "operation": "insert", "payload": f"{one['id']}.safetensors"})
    tier = {"name": "disk", "kind": "file", "uri": os.path.abspath("tier"), "capacity_bytes": 10**10, "read_bytes_per_s": 10**9,
            "write_bytes_per_s": 10**9, "latency_s": 0.001}
    head = {"evp": "manifest", "version": 1, "tool": "operator", "args": [], "from": [], "model_digest": about["model_digest"],
            "alpha": 1, "tiers": [tier], "solver": "evicpress", "objective": len(rows)}
    with open("operator.jsonl", "w") as f:
        for row in [head] + sorted(rows, key=lambda row: row["id"]) + [{"end": True, "rows": len(rows)}]:
            f.write(json.dumps(row) + "\n")
    run("evp-pack", "-q", "-m", model, "-o", "payloads", "operator.jsonl", "mine/contexts.jsonl")
    run("evp-load", "-q", "--payloads", "payloads", "operator.jsonl")
    return out


def plain():
    """plain MODE: of each list of token ids in prompts.json, what vLLM without a connector answers, to plain.json."""
    from vllm import LLM, SamplingParams

    with open("prompts.json") as f:
        asked = [{"prompt_token_ids": ids} for ids in json.load(f)]
    llm = LLM(sys.argv[1], dtype="float32", enforce_eager=True, max_model_len=2048)
    out = llm.generate(asked, SamplingParams(temperature=0, max_tokens=NEW, ignore_eos=True, logprobs=2), use_tqdm=False)
    answers = []
    for one in (o.outputs[0] for o in out):
        tops = [sorted((p.logprob for p in step.values()), reverse=True) for step in one.logprobs]
        answers.append({"ids": list(one.token_ids), "margins": [top[0] - top[1] for top in tops]})
    with open("plain.json", "w") as f:
        json.dump(answers, f)


class Server:
    """vllm serve with the connector, as docs/serving.md has it."""

    def __init__(self, model):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        transfer = {"kv_connector": "EvpConnector", "kv_connector_module_path": "evp.vllm", "kv_role": "kv_consumer",
                    "kv_load_failure_policy": "recompute",
                    "kv_connector_extra_config": {"manifest": os.path.abspath("operator.jsonl"), "dropped": True}}
        self.url, self.log = f"http://127.0.0.1:{port}", open("vllm.log", "w")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", model, "--served-model-name", "m", "--dtype",
             "float32", "--enforce-eager", "--max-model-len", "2048", "--host", "127.0.0.1", "--port", str(port),
             "--enable-prefix-caching", "--enable-prompt-tokens-details", "--kv-transfer-config", json.dumps(transfer)],
            stdout=self.log, stderr=self.log)
        while self.process.poll() is None:
            try:
                self.get("/health")
                return
            except OSError:
                time.sleep(1)
        sys.exit("vllm serve did not start: " + open("vllm.log").read()[-2000:])

    def get(self, path, body=None):
        ask = urllib.request.Request(self.url + path, body and json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(ask) as answer:
            return answer.read().decode()

    def chat(self, text, question):
        """(token ids of the prompt, of the answer, tokens that were not computed, seconds)"""
        start = time.monotonic()
        got = json.loads(self.get("/v1/chat/completions", {
            "model": "m", **body(text, question), "max_tokens": NEW, "temperature": 0, "ignore_eos": True, "return_token_ids": True}))
        cached = (got["usage"]["prompt_tokens_details"] or {}).get("cached_tokens") or 0
        return got["prompt_token_ids"], got["choices"][0]["token_ids"], cached, time.monotonic() - start

    def counted(self):
        """{result: prompts} of vllm:evp_prompts_total."""
        return {line.split('result="')[1].split('"')[0]: int(float(line.split()[-1])) for line in self.get("/metrics").splitlines()
                if line.startswith("vllm:evp_prompts_total{")}

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()


def over_payloads(model, asked):
    """transformers' answers from the payloads' rows: {(source, question): answer}."""
    import torch
    from transformers import AutoModelForCausalLM

    import evp

    out, model = {}, AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    with torch.no_grad(), evp.open("operator.jsonl") as store:
        for key, (ids, n) in asked.items():
            with store.payload(store.find(ids)) as payload:
                check(f"{key}: the chat begins with its context", payload.shape.n_tokens == n)
                out[key] = reference.answer(model, payload, ids[n:])
    return out


def main():
    model, archive, folder = sys.argv[1:4]
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    contexts = place(model, archive)
    print("operator: placed", len(contexts), "contexts of", min(len(c[1]) for c in contexts.values()), "to",
          max(len(c[1]) for c in contexts.values()), "tokens", flush=True)
    server, got = Server(model), {}
    try:
        for clients, question in zip(CLIENTS, QUESTIONS):
            with ThreadPoolExecutor(clients) as pool:
                answers = pool.map(lambda source: server.chat(contexts[source][2], question), contexts)
                round_of = dict(zip(contexts, answers))
            got.update(((source, question), one) for source, one in round_of.items())
            held, computed = ([one[3] for source, one in round_of.items() if SOURCES[source].startswith(NOT_HELD) == other]
                              for other in (False, True))
            print(f"operator: {clients} clients: {mean(held):.1f} s for an answer from what is placed, {mean(computed):.1f} s for one "
                  f"that is computed", flush=True)
        until = time.monotonic() + 30
        while sum(server.counted().values()) < len(got) and time.monotonic() < until:
            server.get("/v1/completions", {"model": "m", "prompt": "Hi", "max_tokens": 1})  # vLLM counts in its next step
        counts = server.counted()
    finally:
        server.close()
    n_computed = sum(config.startswith(NOT_HELD) for config in SOURCES.values()) * len(QUESTIONS)
    check(f"/metrics: {counts}", counts.get("that loaded a context") == len(got) - n_computed
          and counts.get("placed in a form that this engine cannot hold") == n_computed)
    with open("prompts.json", "w") as f:
        json.dump([one[0] for one in got.values()], f)
    subprocess.run([sys.executable, __file__, model, "plain"], check=True)
    with open("plain.json") as f:
        computed = dict(zip(got, json.load(f)))
    loaded = over_payloads(model, {key: (one[0], len(contexts[key[0]][1])) for key, one in got.items()
                                   if not SOURCES[key[0]].startswith(NOT_HELD)})
    same = 0
    for key, (ids, answer, cached, _) in got.items():
        n = len(contexts[key[0]][1])
        check(f"{key}: the prompt's ids are not the context's", ids[:n] == contexts[key[0]][1])
        check(f"{key}: {cached} of {n} tokens not computed", cached == n if key in loaded else cached < n)
        at, fine = reference.compare(answer, loaded.get(key, computed[key]))
        check(f"{key} {SOURCES[key[0]]}: differs at token {at}", fine)
        same += answer == computed[key]["ids"]
    print(f"operator: {len(got)} answers: {len(loaded)} from placed contexts, as transformers over the payloads, "
          f"{n_computed} computed, as vLLM alone; {same} are those of vLLM alone", flush=True)


if __name__ == "__main__":
    os.environ.update(VLLM_CPU_KVCACHE_SPACE="1", VLLM_CPU_OMP_THREADS_BIND="nobind", VLLM_NO_USAGE_STATS="1",
                      VLLM_LOGGING_LEVEL=os.environ.get("VLLM_LOGGING_LEVEL", "ERROR"))
    plain() if sys.argv[2] == "plain" else main()
    sys.exit(failures > 0)
