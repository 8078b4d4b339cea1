"""check.py - the engine through tests/golden/engine/probe: what check and oracle share. Standard library only, but for
logits(), which gives numpy's array."""
import os, subprocess, sys, tempfile

MODELS = os.environ.get("MODELS") or os.path.expanduser("~/.cache/evp/models")
GGUF = os.path.join(MODELS, "SmolLM2-135M-Instruct.Q4_1.gguf")


def report(ok, text):
    print("ok" if ok else "FAIL", text, flush=True)
    return ok


def build_probe(build):
    subprocess.run(["make", "--no-print-directory", "-s", f"{build}/tests/golden/engine/probe"], check=True, stdout=sys.stderr)


def line(ids):
    return " ".join(map(str, ids)) + "\n"


def probe(build, model, arguments, text, dtype="f32", backend="cpu"):
    """None when this machine does not have the backend, or does not compute in the dtype."""
    tool = os.path.join(build, "tests/golden/engine/probe")
    run = subprocess.run([tool, model, f"{backend},{dtype}"] + arguments, input=text, capture_output=True, text=True)
    if run.returncode == 5:
        return None
    if run.returncode:
        sys.exit("FAIL " + run.stderr.strip())
    return run.stdout


def raw_logits(build, model, ids, *more, backend="cpu"):
    """The bytes of (n, n_vocab) f32; more: see probe.c. None without the backend."""
    with tempfile.NamedTemporaryFile() as out:
        if probe(build, model, ["logits", out.name, *map(str, more)], line(ids), backend=backend) is None:
            return None
        with open(out.name, "rb") as f: # the probe has put another file under the name
            return f.read()


def logits(build, model, ids, n_vocab):
    import numpy as np
    return np.frombuffer(raw_logits(build, model, ids), "<f4").reshape(len(ids), n_vocab)


def answers(build, model, context, questions, new, batch, configs, dtype="f32"):
    text = line(context) + "".join(map(line, questions))
    out = probe(build, model, ["answers", str(new), str(batch), configs], text, dtype)
    return out and [[int(i) for i in row.split()] for row in out.split("\n")[:-1]]
