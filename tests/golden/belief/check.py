"""check.py FIT - called by check: beliefs of random tables, and of tables at the edges, by NumPy and by ours to 1e-10."""
import subprocess, sys
import numpy as np
from reference import reference

fit = sys.argv[1]
rng = np.random.default_rng(11)
failed = False


def table(C, V, questions, between=0.08, within=0.27, missing=0.0):
    true = np.clip(rng.uniform(0.3, 0.95, V) + between * rng.standard_normal((C, V)), 0, 1)
    mean, std, n = np.zeros((C, V)), np.full((C, V), np.nan), np.zeros((C, V), int)
    for c in range(C):
        for v in range(V):
            n[c, v] = 0 if v and rng.random() < missing else rng.integers(questions[0], questions[1] + 1)
            x = np.ones(n[c, v]) if v == 0 else np.clip(true[c, v] + within * rng.standard_normal(n[c, v]), 0, 1)
            mean[c, v] = x.mean() if len(x) else np.nan
            std[c, v] = x.std(ddof=1) if len(x) > 1 else np.nan
    return mean, std, n


def compare(name, mean, std, n):
    global failed
    text = f"{mean.shape[0]} {mean.shape[1]}\n" + "\n".join(
        f"{a!r} {b!r} {c}" for a, b, c in zip(mean.ravel().tolist(), std.ravel().tolist(), n.ravel().tolist()))
    r = subprocess.run([fit], input=text, capture_output=True, text=True)
    ours = np.array(r.stdout.split(), float)
    want = reference(mean, std, n)
    good = r.returncode == 0 and ours.shape == want.shape and np.allclose(ours, want, rtol=0, atol=1e-10, equal_nan=True)
    worst = np.nanmax(np.abs(ours - want)) if ours.shape == want.shape else "-"
    failed |= not good
    print(f"ok belief: {name}" if good else f"FAIL belief: {name}: differs by {worst}")


compare("37 contexts, 22 configs, 6 questions", *table(37, 22, (6, 6)))
compare("300 contexts, 4 to 50 questions", *table(300, 12, (4, 50)))
compare("a tenth of the cells asked", *table(60, 10, (1, 12), missing=0.9))
compare("some contexts complete", *table(40, 4, (2, 8), missing=0.3))
compare("one question in each cell", *table(20, 5, (1, 1)))
compare("one context", *table(1, 6, (8, 8)))
compare("one context, one question", *table(1, 6, (1, 1)))
compare("the reference alone", *table(5, 1, (4, 4)))
compare("answers that never vary", *table(10, 3, (4, 4), within=0))
compare("contexts that never vary", *table(10, 3, (4, 4), between=0))
mean, std, n = table(12, 4, (5, 5))
mean[:, 2], std[:, 2] = 1, 0
compare("a config that changes no answer", mean, std, n)
mean[:, 3], std[:, 3], n[:, 3] = np.nan, np.nan, 0
compare("a config that was never asked", mean, std, n)
mean, std, n = table(8, 3, (400, 500))
compare("many questions", mean, std, n)
moved = np.abs(reference(mean, std, n)[9:].reshape(8, 3, 2)[..., 0] - mean).max()
print("ok belief: many questions: predictions are the means" if moved < 0.01 else f"FAIL belief: predictions move {moved}")
sys.exit(failed)
