"""steps.py - the program step for Python: what is believed, the plan, what to ask next."""
import subprocess
import numpy as np


class Steps:
    def __init__(self, program):
        self.p = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, w, mean, std, n, budget=0.0, min_tau=0.0):
        """w: a World. Returns a dict: belief (V, 3), objective, bound, loss, cost, tau, price (T), placement (C, 2),
        requests: a list of (context, n, worth, cost, configs)."""
        C, V = mean.shape
        T = len(w.capacity)
        text = [f"{C} {V} {T} {float(w.alpha)!r} {float(budget)!r} {float(min_tau)!r} {float(w.answer)!r}"]
        text += [" ".join(repr(float(of[t])) for of in (w.capacity, w.per_byte, w.latency)) for t in range(T)]
        text += [f"{f!r} {p!r} {v!r} {q} {l!r}" for f, p, v, q, l in
                 zip(w.frequency.tolist(), w.prefill_s.tolist(), w.visit.tolist(), w.n_questions.tolist(), w.floor.tolist())]
        text += [f"{b!r} {m!r} {s!r} {k}" for b, m, s, k in
                 zip(w.bytes[:, :V].ravel().tolist(), mean.ravel().tolist(), std.ravel().tolist(), n.ravel().tolist())]
        self.p.stdin.write("\n".join(text) + "\n")
        self.p.stdin.flush()
        row = lambda: [float(x) for x in self.p.stdout.readline().split()]
        belief = np.array([row() for _ in range(V)])
        objective, bound, loss, cost, tau = row()
        price = np.array([row()[0] for _ in range(T)])
        placement = np.array([row() for _ in range(C)]).astype(int)
        requests = []
        for _ in range(int(row()[0])):
            r = row()
            requests.append((int(r[0]), int(r[1]), r[2], r[3], [int(x) for x in r[5:]]))
        return dict(belief=belief, objective=objective, bound=bound, loss=loss, cost=cost, tau=tau, price=price,
                    placement=placement, requests=requests)


class World:
    """Contexts, tiers and what a plan is for; all but the answers."""

    def __init__(self, n_tokens, bytes, n_questions, alpha=1.0, dram=0.2, ssd=0.3, remote=False, zipf=0.6, seed=0):
        C = len(n_tokens)
        self.prefill_s = n_tokens * 2e-3
        self.bytes = bytes
        total, spent = bytes[:, 0].sum(), self.prefill_s.sum()
        self.alpha = alpha * self.prefill_s.mean()
        self.capacity = [dram * total, ssd * total] + ([np.inf] if remote else [])
        self.per_byte = [ratio * spent / total for ratio in (0.05, 0.33, 1.0)[:len(self.capacity)]]
        self.latency = [0.0] * len(self.capacity)
        self.frequency = (np.random.default_rng(seed).permutation(C) + 1.0) ** -zipf
        self.frequency *= C / self.frequency.sum()
        self.visit = n_tokens.astype(float)
        self.answer = 50.0
        self.n_questions = np.full(C, n_questions)
        self.floor = np.zeros(C)

    def full_cost(self, V):
        return (self.visit + self.n_questions * V * self.answer).sum()

    def utility(self, placement, quality):
        """What placements bring by these qualities."""
        total = 0.0
        for c, (v, t) in enumerate(placement):
            ttft = self.prefill_s[c] if t < 0 else self.latency[t] + self.per_byte[t] * self.bytes[c, v]
            total += self.frequency[c] * (self.alpha * (1 if t < 0 else quality[c, v]) - ttft)
        return total

    def recompute(self):
        return (self.frequency * (self.alpha - self.prefill_s)).sum()


def numbers(answers, n):
    """Mean, deviation (n - 1) and number of the first n (C, V) of answers (C, V, Q)."""
    first = np.arange(answers.shape[2]) < n[..., None]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(first, answers, 0).sum(2) / n
        std = np.sqrt(np.where(first, (answers - mean[..., None]) ** 2, 0).sum(2) / (n - 1))
    return mean, np.where(n > 1, std, np.nan), n


def sample(steps, w, answers, share, rng, deep=12):
    """The rival: random contexts within `share` of the cost of all answers, `deep` questions of each over all configs, and
    what is believed of the others. Returns as profile() does."""
    C, V, Q = answers.shape
    n, spent, full = np.zeros((C, V), int), 0.0, w.full_cost(V)
    for c in rng.permutation(C):
        fit = int((share * full - spent - w.visit[c]) // (V * w.answer))
        n[c] = min(deep, Q, fit) if fit >= 2 else 0
        if fit < 2:
            break
        spent += w.visit[c] + n[c, 0] * V * w.answer
    return steps(w, *numbers(answers, n)), spent / full, n


def profile(steps, w, answers, share, rng, prior=None):
    """Aimed profiling: a pilot, then lists, within `share` of the cost of all answers. answers (C, V, Q): [0] is all ones.
    Returns the last step, and the cost spent."""
    C, V, Q = answers.shape
    n = np.zeros((C, V), int) if prior is None else prior.copy()
    left = share * w.full_cost(V)
    full = left / share
    spent = 0.0
    if prior is None:
        P, deep = (8, 8) if C <= 100 else (16, 12)
        deep = min(deep, Q)
        for i, c in enumerate(rng.permutation(C)[:P]):
            cost = w.visit[c] + deep * V * w.answer
            if i >= 2 and spent + cost > left:
                break
            n[c] = deep
            spent += cost
    is_ = steps(w, *numbers(answers, n))
    for k in range(3):
        gain = max(is_["objective"] - w.recompute(), 0)
        budget = max(left - spent, 0) * (2 / (4 - k))
        is_ = steps(w, *numbers(answers, n), budget=budget, min_tau=1e-3 * gain / full)
        for c, m, _, cost, configs in is_["requests"]:
            before = n[c].max() if n[c].any() else 0
            for v in configs:
                n[c, v] = min(n[c, v] + m, Q)
            references = max(n[c].max() - before, 0)
            n[c, 0] = max(n[c, 0], n[c].max())
            spent += cost - (m - references) * w.answer if references < m else cost
    return steps(w, *numbers(answers, n)), spent / full, n
