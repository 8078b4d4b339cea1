"""calibration.py FIT - called by check: are predictions as uncertain as they say? Contexts and questions are drawn again and
again from recorded answers (tests/golden/belief/recorded.npz: 63 contexts, 12 configs, 12 questions), predictions made from 4
or 8 questions each, and compared with the answers to the others: the variance of their errors with the claimed one, and how
often intervals of 90 % hold what they should."""
import os, subprocess, sys
import numpy as np

fit, Z90 = sys.argv[1], 1.6449
recorded = np.load(os.path.join(os.path.dirname(__file__), "recorded.npz"))["similarity"] / 65535
C, V, Q = recorded.shape
rng, failed = np.random.default_rng(1), False


def predict(mean, std, n):
    text = f"{mean.shape[0]} {V}\n" + "\n".join(f"{m!r} {s!r} {n}" for m, s in zip(mean.ravel().tolist(), std.ravel().tolist()))
    out = np.array(subprocess.run([fit], input=text, capture_output=True, text=True, check=True).stdout.split(), float)
    return out[: 3 * V].reshape(V, 3)[:, 2], out[3 * V :].reshape(-1, V, 2)


for asked in 4, 8:
    for n in 1, 2, 4, 8, 16, 32, 63:
        error, claimed, inside = [], [], []
        for _ in range(400 if n < 32 else 60):
            some = np.stack([recorded[c][:, rng.permutation(Q)] for c in rng.choice(C, n, replace=False)])
            train, test = some[..., :asked], some[..., asked:]
            within, p = predict(train.mean(2), train.std(2, ddof=1), asked)
            off = test.mean(2) - p[..., 0]
            error.append((off**2 - test.var(2, ddof=1) / (Q - asked))[:, 1:])  # less the noise of the test questions
            claimed.append((p[..., 1] ** 2)[:, 1:])
            inside.append((abs(off) <= Z90 * np.sqrt(p[..., 1] ** 2 + within / (Q - asked)))[:, 1:])
        ratio = np.concatenate(error).mean() / np.concatenate(claimed).mean()
        covered = np.concatenate(inside).mean()
        good = 0.8 < ratio < 1.2 and 0.85 < covered < 0.95
        failed |= not good
        print(f"{'ok' if good else 'FAIL'} calibration: {n} contexts, {asked} questions: variance {ratio:.2f} of the claimed, "
              f"90 % intervals hold {covered:.3f}")
sys.exit(failed)
