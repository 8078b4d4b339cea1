"""replay.py STEP RECORDED [CURVE] - aimed profiling against recorded answers: plans from 12 % of the time beside those of
the full table, both judged by the true qualities, and beside those of as much time spent on random contexts.

A context is a mixture of two recorded ones (record.py), with a random weight: its answers are drawn from theirs, and its
true quality is the mixture of their means. Gains are sums over eight settings of alpha, capacity, tiers and use: over
recomputing, and over storing uncompressed or not at all (compression gain). With CURVE a table of shares and gains is
written there, for docs/aimed.gnuplot.
"""
import sys
import numpy as np
from steps import Steps, World, numbers, profile, sample

steps = Steps(sys.argv[1])
recorded = np.load(sys.argv[2])
similarity, tokens, sizes = recorded["similarity"] / 65535.0, recorded["n_tokens"], recorded["bytes"].astype(float)
C0, V, Q0 = similarity.shape
Q = 50
# alpha in mean prefills; capacity of dram and ssd as shares of all caches; a remote tier; skew of use
SETTINGS = [(0.3, 0.1, False, 0.0), (1, 0.2, False, 0.6), (3, 0.3, False, 1.2), (10, 0.2, True, 0.6),
            (0.3, 0.3, True, 1.2), (1, 0.1, True, 0.0), (3, 0.2, True, 0.6), (10, 0.1, False, 1.2)]
failed = False


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


def world(of, setting, seed):
    alpha, dram, remote, zipf = setting
    return World(of[0], of[1], Q, alpha, dram, 0.3, remote, zipf, seed)


def utilities(w, answers, true, aimed):
    """of the aimed plan, the full table's, the one without compression, recomputing"""
    full = steps(w, *numbers(answers, np.full(true.shape, Q)))
    plain = steps(w, *numbers(answers[:, :1], np.full((len(true), 1), Q)))
    return [w.utility(is_["placement"], true) for is_ in (aimed, full, plain)] + [w.recompute()]


def gains(sums):
    aimed, full, plain, recompute = sums
    return (aimed - recompute) / (full - recompute), (aimed - plain) / (full - plain)


def run(C, share, draws=1, strangers=0, how=profile):
    sums, said, lost = np.zeros(4), 0.0, 0.0
    for seed in range(draws):
        for k, setting in enumerate(SETTINGS):
            rng = np.random.default_rng([seed, k, C])
            of = draw(rng, C, strangers)
            w = world(of, setting, seed)
            aimed, _, _ = how(steps, w, of[2], share, rng)
            u = utilities(w, of[2], of[3], aimed)
            best = steps(w, of[3], np.full((C, V), 1e-9), np.full((C, V), 10 ** 8))
            sums += u
            said += max(0, aimed["bound"] - aimed["objective"]) + aimed["loss"]
            lost += best["bound"] - u[0]
    return (*gains(sums), said / (sums[1] - sums[3]), lost / (sums[1] - sums[3]))


def nights(C=100, share=0.2):
    """A night later a tenth of the contexts is new and use has drifted; answers are kept, and `share` of what the new
    ones' profiles would cost is spent."""
    sums = np.zeros(4)
    for k, setting in enumerate(SETTINGS):
        rng = np.random.default_rng([99, k])
        of = draw(rng, C)
        w = world(of, setting, 1)
        _, _, n = profile(steps, w, of[2], 0.12, rng)
        new = draw(rng, C // 10)
        for old, now in zip(of, new):
            old[:C // 10] = now
        n[:C // 10] = 0
        w = world(of, setting, 1)
        w.frequency *= rng.lognormal(0, 0.5, C)
        aimed, _, _ = profile(steps, w, of[2], share / 10, rng, prior=n)
        sums += utilities(w, of[2], of[3], aimed)
    return gains(sums)


def say(name, over_recompute, compression):
    global failed
    good = over_recompute >= 0.99 and compression >= 0.95
    failed |= not good
    print(f"{'ok' if good else 'FAIL'} aim: {name}: {over_recompute:.4f} of the full table's gain over recomputing, "
          f"{compression:.3f} of its compression gain")


for contexts, more, what in ((63, {}, "12 % of the time"), (24, dict(draws=2), "12 % of the time"),
                             (200, {}, "12 % of the time"), (200, dict(strangers=20), "a tenth of another kind")):
    say(f"{contexts} contexts, {what}", *run(contexts, 0.12, **more)[:2])
    random = run(contexts, 0.12, how=sample, **more)
    print(f"   {contexts} contexts, {what}, random: {random[0]:.4f} and {random[1]:.3f}")
say("a night later, 2 % of the time", *nights())
if len(sys.argv) > 3:
    with open(sys.argv[3], "w") as out:
        print("# share of the time, gain over recomputing, compression gain, loss as estimated, true loss; 63 contexts", file=out)
        for share in (0.03, 0.06, 0.09, 0.12, 0.2, 0.3):
            print(share, *(f"{x:.5f}" for x in run(63, share, draws=2)), file=out)
sys.exit(failed)
