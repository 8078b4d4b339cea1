"""llamacpp.py BUILD_DIR MODEL.gguf - one prefill of 4,096 tokens on two cores, ours in f32 beside llama.cpp's, whose server is
in the package xllamacpp (pip). That wheel computes with AVX2: set EVP_CPU=avx2 for a fair pair. Needs tests/bench/engine in
BUILD_DIR and the licences of a Debian."""
import json, os, subprocess, sys, tempfile
import xllamacpp

build, model = sys.argv[1:]
PROMPT, THREADS, TURNS = 4096, 2, 3
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])  # ours has a thread for each core
kept = tempfile.TemporaryDirectory(prefix="evp-bench-")
scratch = kept.name
with open(scratch + "/text", "w") as f:
    f.write("".join(open("/usr/share/common-licenses/" + name).read() for name in ("GPL-3", "Apache-2.0")).replace("\n", " "))
said = subprocess.run([build + "/evp-show", model, "--tokenize", scratch + "/text"], check=True, capture_output=True, text=True)
with open(scratch + "/ids", "w") as f:
    f.write(said.stdout)
ids = [int(i) for i in said.stdout.split()]


def ours():
    out = subprocess.run([build + "/tests/bench/engine", model, scratch + "/ids", str(PROMPT), "1", "2", "f32"], check=True,
                         capture_output=True, text=True)
    return json.loads(out.stdout)["prefill_s"]


params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.n_parallel, params.cache_prompt = model, PROMPT + 64, 1, False
params.cache_ram_mib, params.n_ctx_checkpoints, params.verbosity = 0, 0, -1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = THREADS


def theirs():
    """A server of its own for each turn: threads that wait for work would take it from ours."""
    server = xllamacpp.Server(params)
    for first in 7, 8:  # the first warms caches up
        said = server.handle_completions({"prompt": [first] + ids[1:PROMPT], "max_tokens": 1, "cache_prompt": False})
    said = (json.loads(said) if isinstance(said, (str, bytes)) else said)["timings"]
    assert said["prompt_n"] == PROMPT, said
    return said["prompt_ms"] / 1e3


turns = [(ours(), theirs()) for _ in range(TURNS)]
mine, llama = map(min, zip(*turns))
print(f"llama.cpp {llama:.2f} s, ours {mine:.2f} s: {mine / llama:.2f} of its time; xllamacpp {xllamacpp.__version__}, turns {turns}")
