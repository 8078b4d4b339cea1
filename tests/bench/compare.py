"""compare.py BUILD_DIR [PART...] - time our programs and their peers one after the other and print ratios.

Every part runs ours, then the peer, on the same input with the same number of threads. Times on a busy machine are worth
little; the ratio within one run is what counts. `share` runs no peer but the machine itself: which part of the rate of
oneDNN's own matrix products, of 512 rows in the same dtype, prefill and a whole profile reach.
"""
import json, os, subprocess, sys, tempfile, time

build, parts = sys.argv[1], sys.argv[2:] or ["share", "prefill", "decode", "embed", "profile"]
models = os.environ.get("EVP_MODELS") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "evp/models")
gguf, minilm = models + "/SmolLM2-135M-Instruct.Q4_1.gguf", models + "/all-MiniLM-L6-v2"
threads = len(os.sched_getaffinity(0))
scratch = tempfile.mkdtemp(prefix="evp-bench-")
QUESTION, NEW = 24, 40
rows = []


def report(what, ours, peer, theirs, unit, limit):
    """One line: higher is better for both numbers."""
    rows.append((what, f"{ours:,.4g} {unit}", peer, f"{theirs:,.4g} {unit}", f"{ours / theirs:.2f}x", limit))
    print(f"  {what}: {rows[-1][1]}, {peer} {rows[-1][3]}: {rows[-1][4]}", file=sys.stderr, flush=True)


def long_text():
    licences = ["GPL-3", "Apache-2.0", "MPL-2.0", "LGPL-2.1"]
    return "\n".join(open("/usr/share/common-licenses/" + name).read() for name in licences)


def our_ids(text):
    path = scratch + "/text"
    open(path, "w").write(text.replace("\n", " ") + "\n")
    out = subprocess.run([build + "/evp-show", gguf, "--tokenize", path], check=True, capture_output=True, text=True)
    return [int(i) for i in out.stdout.split()]


def run_json(*command):
    """The one line of JSON that a program of ours prints; None when this machine lacks what it needs."""
    out = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if out.returncode == 5:
        return None
    if out.returncode:
        raise SystemExit(out.stderr)
    return json.loads(out.stdout)


def engine(ids, prompt, sequences, dtype="f32"):
    path = scratch + "/ids"
    open(path, "w").write(" ".join(map(str, ids)))
    return run_json(build + "/tests/bench/engine", gguf, path, prompt, sequences, NEW, dtype)


class Llama:
    """llama.cpp through its C API: one shared prompt, `sequences` continuations in one batch per step."""

    def __init__(self, sequences, context):
        import ctypes, llama_cpp as l
        self.l, self.n = l, sequences
        self.silence = l.llama_log_callback(lambda *a: None)  # kept: the library calls it later
        l.llama_log_set(self.silence, ctypes.c_void_p(0))
        l.llama_backend_init()
        self.model = l.llama_model_load_from_file(gguf.encode(), l.llama_model_default_params())
        p = l.llama_context_default_params()
        p.n_ctx, p.n_batch, p.n_ubatch, p.n_seq_max = context, 2048, 512, sequences + 1
        p.n_threads = p.n_threads_batch = threads
        if hasattr(p, "kv_unified"):
            p.kv_unified = True
        self.ctx = l.llama_init_from_model(self.model, p)
        self.memory = l.llama_get_memory(self.ctx)

    def run(self, rows):
        """rows: (id, position, sequence, wants logits)"""
        for first in range(0, len(rows), 2048):
            piece = rows[first:first + 2048]
            batch = self.l.llama_batch_init(len(piece), 0, 1)
            batch.n_tokens = len(piece)
            for i, (token, position, sequence, logits) in enumerate(piece):
                batch.token[i], batch.pos[i], batch.n_seq_id[i] = token, position, 1
                batch.seq_id[i][0], batch.logits[i] = sequence, logits
            assert self.l.llama_decode(self.ctx, batch) == 0
            self.l.llama_batch_free(batch)

    def time(self, ids, prompt):
        self.run([(ids[0], 0, 0, 0)])
        self.l.llama_memory_seq_rm(self.memory, 0, -1, -1)
        start = time.time()
        self.run([(ids[i], i, 0, i == prompt - 1) for i in range(prompt)])
        self.l.llama_synchronize(self.ctx)
        prefill = time.time() - start
        for s in range(1, self.n + 1):
            self.l.llama_memory_seq_cp(self.memory, 0, s, -1, -1)
        self.run([(ids[prompt + (s - 1) * QUESTION + i], prompt + i, s, i == QUESTION - 1)
                  for s in range(1, self.n + 1) for i in range(QUESTION)])
        self.l.llama_synchronize(self.ctx)
        steps, start = NEW - 1, time.time()
        for step in range(steps):
            self.run([(1000 + s, prompt + QUESTION + step, s, 1) for s in range(1, self.n + 1)])
        self.l.llama_synchronize(self.ctx)
        return prefill, self.n * steps / (time.time() - start)

    def close(self):
        self.l.llama_free(self.ctx)
        self.l.llama_model_free(self.model)


def hf_folder():
    out = os.environ.get("EVP_HF_MODEL") or "build/hf-smollm2"
    if not os.path.exists(out + "/config.json"):
        subprocess.run([sys.executable, "tests/golden/gguf_to_hf.py", gguf, out], check=True, stdout=subprocess.DEVNULL)
    return out


def bench_prefill_and_decode():
    ids = our_ids(long_text())
    for prompt in (4096, 64):
        ours = engine(ids, prompt, 50)
        llama = Llama(50, prompt + 50 * (QUESTION + NEW) + 64)
        prefill, decode = llama.time(ids, prompt)
        llama.close()
        if prompt == 4096 and "prefill" in parts:
            report("prefill of 4096 tokens", prompt / ours["prefill_s"], "llama.cpp", prompt / prefill, "tokens/s",
                   "fp32 multiply-add rate of the cores")
            report("prefill of 4096 tokens", prompt / ours["prefill_s"], "transformers", prompt / hf_prefill(ids[:prompt]),
                   "tokens/s", "the same")
        if "decode" in parts:
            report(f"50 sequences over a shared {prompt}-token prompt", ours["decode_tokens"] / ours["decode_s"],
                   "llama.cpp", decode, "tokens/s",
                   "shared attention, half the time" if prompt > 1000 else "weight and output-layer GEMMs")


def hf_prefill(ids):
    import torch
    from transformers import AutoModelForCausalLM
    torch.set_num_threads(threads)
    model = AutoModelForCausalLM.from_pretrained(hf_folder(), dtype=torch.float32).eval()
    best = 1e9
    with torch.no_grad():
        for _ in range(2):
            start = time.time()
            model(torch.tensor([ids]), logits_to_keep=1)
            best = min(best, time.time() - start)
    return best


def bench_embed():
    import numpy, onnxruntime, torch
    from tokenizers import Tokenizer
    from transformers import AutoModel
    words = long_text().split()
    texts = [" ".join(words[i * 24:i * 24 + 6 + i % 32]) for i in range(400)]  # answers of 6 to 37 words
    path, onnx_path = scratch + "/texts", scratch + "/minilm.onnx"
    open(path, "w").write("".join(t + "\n" for t in texts))
    out = subprocess.run([build + "/tests/bench/embed", minilm, path], check=True, capture_output=True, text=True)
    ours = json.loads(out.stdout)
    bert = AutoModel.from_pretrained(minilm, attn_implementation="eager").eval()

    class Hidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = bert

        def forward(self, ids, mask, types):
            return self.bert(input_ids=ids, attention_mask=mask, token_type_ids=types).last_hidden_state

    names = ["input_ids", "attention_mask", "token_type_ids"]
    shape = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length", max=512)}
    torch.onnx.export(Hidden(), tuple(torch.ones(2, 8, dtype=torch.long) for _ in names), onnx_path, input_names=names,
                      output_names=["hidden"], dynamic_shapes=(shape,) * 3, dynamo=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(onnx_path, options, providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(minilm + "/tokenizer.json")
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding()

    def peer():
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))  # sentence-transformers sorts by length too
        for first in range(0, len(order), 32):
            batch = tokenizer.encode_batch([texts[i] for i in order[first:first + 32]])
            ids = numpy.array([b.ids for b in batch], dtype=numpy.int64)
            mask = numpy.array([b.attention_mask for b in batch], dtype=numpy.int64)
            hidden = session.run(None, {names[0]: ids, names[1]: mask, names[2]: numpy.zeros_like(ids)})[0]
            mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
            mean / numpy.linalg.norm(mean, axis=1, keepdims=True)

    best = 1e9
    for _ in range(3):
        start = time.time()
        peer()
        best = min(best, time.time() - start)
    report("MiniLM, 400 answers", ours["texts"] / ours["seconds"], "onnxruntime", len(texts) / best, "sentences/s",
           "GEMMs of a few hundred rows")


ASK = (" Answer the question based on the above article as concisely as you can, using a single phrase or sentence if "
       "possible. If the question cannot be answered based on the information in the article, write \"unanswerable\". If "
       "the question is a yes/no question, answer \"yes\", \"no\", or \"unanswerable\". Do not provide any "
       "explanation.\n\nQuestion: {question}\n\nAnswer:")  # LongBench's for qasper
CONFIGS = ",".join(f"{m}:drop=0.1..0.9/0.2" for m in ("knorm", "keydiff", "snapkv"))


def profile_inputs(letters, questions):
    """A context of so many letters with its questions, asked as LongBench asks qasper's."""
    contexts, asked = scratch + "/contexts.jsonl", scratch + "/questions.jsonl"
    text = long_text()[:letters]
    rows_in = scratch + "/one.jsonl"
    open(rows_in, "w").write(json.dumps({"id": "gpl", "text": text, "ask": "\n\n" + ASK}) + "\n")
    subprocess.run([build + "/evp-import", "-q", rows_in, "-o", contexts], check=True)
    subprocess.run([build + "/evp-qgen", "-q", contexts, "--per-context", str(questions), "-o", asked], check=True)
    return text, contexts, asked


def bench_share():
    ids = our_ids(long_text())
    _, contexts, asked = profile_inputs(9000, 8)
    for dtype in ("f32", "bf16"):
        one = engine(ids, 4096, 8, dtype)
        if one is None:
            print(f"  {dtype}: not on this machine", file=sys.stderr)
            continue
        whole = run_json(build + "/tests/bench/profile", gguf, contexts, asked, CONFIGS, 32, dtype)
        for what, got, flop in (("prefill of 4096 tokens", one, one["prefill_share"] * one["gemm_rate"]),
                                ("a whole profile (2k tokens, 15 configs, 8 questions)", whole,
                                 whole["share"] * whole["gemm_rate"])):
            report(f"{what}, {dtype} on {got['backend']}", flop / 1e9, "oneDNN's products", got["gemm_rate"] / 1e9,
                   "GFLOP/s", "the products themselves")


def kvpress_answers(text, asked, dtype):
    """Answers per second. kvpress prefills again and answers one question at a time for each of the 16 variants, so all
    runs cost alike: four of them, one per method and the reference, are timed."""
    import torch
    from kvpress import KeyDiffPress, KnormPress, SnapKVPress
    from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline
    torch.set_num_threads(threads)
    folder = hf_folder()
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
    pipe = pipeline("kv-press-text-generation", model=model, tokenizer=AutoTokenizer.from_pretrained(folder), device="cpu")
    questions = [ASK.format(question=json.loads(line)["text"]) for line in open(asked) if '"context"' in line]
    start = time.time()
    pipe(text, questions=questions, max_new_tokens=32)
    for press in (KnormPress, KeyDiffPress, SnapKVPress):
        pipe(text, questions=questions, press=press(compression_ratio=0.5), max_new_tokens=32)
    return 4 * len(questions) / (time.time() - start)


def bench_profile():
    """15 configs of 3 methods, 32 tokens: 8 questions on 2k tokens, 20 on 4k; per second: answers."""
    import torch
    for tokens, letters, n in ((2, 9000, 8), (4, 18000, 20)):
        text, contexts, asked = profile_inputs(letters, n)
        start = time.time()
        subprocess.run([build + "/evp-profile", "-q", contexts, asked, "--max-new-tokens", "32", "--dtype", "fastest", "--temperature", "0",
                        "--overwrite", "-o", scratch + "/p.h5", "--configs", CONFIGS], check=True)
        ours = 16 * n / (time.time() - start)
        theirs = {str(d)[6:]: kvpress_answers(text, asked, d) for d in (torch.float32, torch.bfloat16)}
        faster = max(theirs, key=theirs.get)
        report(f"a whole profile ({tokens}k tokens, 15 configs, {n} questions)", ours,
               f"kvpress in {faster} (4 of its 16 runs)", theirs[faster], "answers/s", "decode GEMMs and shared attention")


if "share" in parts:
    bench_share()
if "prefill" in parts or "decode" in parts:
    bench_prefill_and_decode()
if "embed" in parts:
    bench_embed()
if "profile" in parts:
    bench_profile()
print("| what | ours | peer | | ratio | what limits ours |\n| --- | --- | --- | --- | --- | --- |")
for row in rows:
    print("| " + " | ".join(row) + " |")
