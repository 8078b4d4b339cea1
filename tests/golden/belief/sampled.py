"""sampled.py STEP RECORDED [SHARE...] - plans from a random sample of the contexts beside those of the full table, both
judged by the true qualities. SHARE: of the time of all answers; .12 without it.

A context is a mixture of two recorded ones (record.py), with a random weight: its answers are drawn from theirs, and its
true quality is the mixture of their means. Gains are sums over eight settings of alpha, capacity, tiers and use: over
recomputing, and over storing uncompressed or not at all (compression gain).
"""
import subprocess, sys
import numpy as np

program = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
recorded = np.load(sys.argv[2])
similarity, tokens, sizes = recorded["similarity"] / 65535.0, recorded["n_tokens"], recorded["bytes"].astype(float)
C0, V, Q0 = similarity.shape
Q, DEEP, ANSWER = 50, 12, 50.0 # questions of a context; of a context of the sample; an answer in tokens of prefill
# alpha in mean prefills; capacity of dram as a share of all caches; a remote tier; skew of use
SETTINGS = [(0.3, 0.1, False, 0.0), (1, 0.2, False, 0.6), (3, 0.3, False, 1.2), (10, 0.2, True, 0.6),
            (0.3, 0.3, True, 1.2), (1, 0.1, True, 0.0), (3, 0.2, True, 0.6), (10, 0.1, False, 1.2)]


class World:
    """Contexts, tiers and what a plan is for; all but the answers."""

    def __init__(self, n_tokens, bytes, setting, seed):
        alpha, dram, remote, zipf = setting
        C = len(n_tokens)
        self.visit, self.prefill_s, self.bytes = n_tokens, n_tokens * 2e-3, bytes
        total, spent = bytes[:, 0].sum(), self.prefill_s.sum()
        self.alpha = alpha * self.prefill_s.mean()
        self.capacity = [dram * total, 0.3 * total] + ([np.inf] if remote else [])
        self.per_byte = [ratio * spent / total for ratio in (0.05, 0.33, 1.0)[:len(self.capacity)]]
        self.frequency = (np.random.default_rng(seed).permutation(C) + 1.0) ** -zipf
        self.frequency *= C / self.frequency.sum()

    def plan(self, answers, n):
        """Placements (config, tier) from the first n (C, V) of answers (C, V, Q)."""
        C, V = n.shape
        first = np.arange(answers.shape[2]) < n[..., None]
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(first, answers, 0).sum(2) / n
            std = np.sqrt(np.where(first, (answers - mean[..., None]) ** 2, 0).sum(2) / (n - 1))
        std = np.where(n > 1, std, np.nan)
        text = [f"{C} {V} {len(self.capacity)} {float(self.alpha)!r}"]
        text += [f"{float(c)!r} {float(s)!r}" for c, s in zip(self.capacity, self.per_byte)]
        text += [f"{f!r} {p!r}" for f, p in zip(self.frequency.tolist(), self.prefill_s.tolist())]
        text += [f"{b!r} {m!r} {s!r} {k}" for b, m, s, k in zip(self.bytes[:, :V].ravel().tolist(), mean.ravel().tolist(),
                                                                std.ravel().tolist(), n.ravel().tolist())]
        program.stdin.write("\n".join(text) + "\n")
        program.stdin.flush()
        return [[int(x) for x in program.stdout.readline().split()] for _ in range(C)]

    def utility(self, placement, quality):
        """What placements bring by these qualities."""
        total = 0.0
        for c, (v, t) in enumerate(placement):
            ttft = self.prefill_s[c] if t < 0 else self.per_byte[t] * self.bytes[c, v]
            total += self.frequency[c] * (self.alpha * (1 if t < 0 else quality[c, v]) - ttft)
        return total

    def sample(self, share, rng):
        """How many questions of each cell (C, V) are answered: random contexts within `share` of the cost of all."""
        C = len(self.visit)
        n, left = np.zeros((C, V), int), share * (self.visit + Q * V * ANSWER).sum()
        for c in rng.permutation(C):
            cost = self.visit[c] + DEEP * V * ANSWER
            if cost > left:
                break
            left -= cost
            n[c] = DEEP
        return n


def draw(rng, C, strangers=0):
    answers, true, n_tokens, bytes = np.ones((C, V, Q)), np.ones((C, V)), np.zeros(C), np.zeros((C, V))
    for c in range(C):
        a, b = rng.choice(C0, 2, replace=False)
        weight = rng.random()
        of, q = np.where(rng.random(Q) < weight, a, b), rng.integers(Q0, size=Q)
        answers[c] = similarity[of, :, q].T
        true[c] = weight * similarity[a].mean(1) + (1 - weight) * similarity[b].mean(1)
        n_tokens[c], bytes[c] = tokens[a], sizes[a]
        if c < strangers: # of another kind: the configs change places
            other = 1 + rng.permutation(V - 1)
            answers[c, 1:], true[c, 1:] = answers[c, other], true[c, other]
    return n_tokens, bytes, answers, true


def run(C, share, draws, strangers=0):
    sums = np.zeros(4) # by a sample, the full table, without compression, recomputing
    for seed in range(draws):
        for k, setting in enumerate(SETTINGS):
            rng = np.random.default_rng([seed, k, C])
            n_tokens, bytes, answers, true = draw(rng, C, strangers)
            w = World(n_tokens, bytes, setting, seed)
            for i, n in enumerate((w.sample(share, rng), np.full((C, V), Q), np.full((C, 1), Q))):
                sums[i] += w.utility(w.plan(answers[:, :n.shape[1]], n), true)
            sums[3] += (w.frequency * (w.alpha - w.prefill_s)).sum()
    return (sums[0] - sums[3]) / (sums[1] - sums[3]), (sums[0] - sums[2]) / (sums[1] - sums[2])


failed = False
for share in [float(s) for s in sys.argv[3:]] or [0.12]:
    for C, draws, strangers in (63, 2, 0), (24, 6, 0), (200, 1, 0), (200, 1, 20):
        gain, compression = run(C, share, draws, strangers)
        good = share < 0.12 or gain >= 0.975 and compression >= 0.91
        failed |= not good
        print(f"{'ok' if good else 'FAIL'} belief: {C} contexts{', a tenth of another kind' * (strangers > 0)}, {share:.0%} of "
              f"the time: {gain:.4f} of the full table's gain over recomputing, {compression:.3f} of its compression gain")
sys.exit(failed)
