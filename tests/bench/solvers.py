"""solvers.py BUILD_DIR [SECONDS] - the planner beside two general solvers, HiGHS (in scipy) and CBC, on the same instances.

They get each context's undominated candidates only, and at most SECONDS (60) each. Where they finish, their optimum has
to be between our plan and our bound; otherwise this ends with status 1.
"""
import os, re, subprocess, sys, tempfile, time

import numpy
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix

build, limit = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 60
plan = build + "/tests/bench/plan"
SIZES, SEED, WORK = (200, 555, 2000), 1, 1000000
SCALE = 1000  # capacities as the solvers see them: their tolerance of 1e-6 is then 1e-9 of a tier
TOLERANCE = 1e-8


def instance(n):
    """Capacities and each context's undominated candidates: (tier, bytes, utility); a free tier is -1, with 0 bytes."""
    lines = subprocess.run([plan, "real", str(n), str(SEED), "dump"], check=True, capture_output=True, text=True).stdout.split("\n")
    capacity = [float(c) for c in lines[0].split()[2:]]
    candidates = [[] for _ in range(n)]
    for line in lines[1:-1]:
        context, tier, size, utility = line.split()
        tier, size = int(tier), float(size)
        free = tier < 0 or capacity[tier] < 0
        candidates[int(context)].append((-1 if free else tier, 0 if free else size, float(utility)))
    return capacity, [undominated(o, capacity) for o in candidates]


def undominated(candidates, capacity):
    free = max(u for t, s, u in candidates if t < 0)
    keep = [(-1, 0.0, free)]
    for tier in range(len(capacity)):
        best = free
        for _, s, u in sorted((o for o in candidates if o[0] == tier and o[1] <= capacity[tier]), key=lambda o: (o[1], -o[2])):
            if u > best:
                best = u
                keep.append((tier, s, u))
    return keep


def highs(capacity, candidates):
    flat = [(i, *o) for i, own in enumerate(candidates) for o in own]
    tiers = [t for t, c in enumerate(capacity) if c >= 0]
    rows, cols, values = [], [], []
    for k, (i, tier, size, _) in enumerate(flat):
        rows.append(i), cols.append(k), values.append(1.0)
        if tier >= 0:
            rows.append(len(candidates) + tiers.index(tier)), cols.append(k), values.append(size / capacity[tier] * SCALE)
    a = csr_matrix((values, (rows, cols)))
    low = [1.0] * len(candidates) + [0.0] * len(tiers)
    high = [1.0] * len(candidates) + [float(SCALE)] * len(tiers)
    start = time.time()
    r = milp(-numpy.array([u for *_, u in flat]), constraints=LinearConstraint(a, low, high), bounds=Bounds(0, 1),
             integrality=numpy.ones(len(flat)), options={"time_limit": limit, "mip_rel_gap": 0})
    return time.time() - start, -r.fun if r.x is not None else None, r.status == 0


def cbc(capacity, candidates):
    with tempfile.TemporaryDirectory() as folder:
        names, fill = [], {t: [] for t, c in enumerate(capacity) if c >= 0}
        with open(folder + "/model.lp", "w") as f:
            f.write("Maximize\n obj:")
            for i, own in enumerate(candidates):
                for k, (tier, size, utility) in enumerate(own):
                    f.write(f" {utility:+.17g} x{i}_{k}\n")
                    names.append(f"x{i}_{k}")
                    if tier >= 0:
                        fill[tier].append(f" +{size / capacity[tier] * SCALE:.17g} x{i}_{k}\n")
            f.write("Subject To\n")
            for i, own in enumerate(candidates):
                f.write(f" c{i}:" + "".join(f" + x{i}_{k}" for k in range(len(own))) + " = 1\n")
            for tier, terms in fill.items():
                f.write(f" t{tier}:" + "".join(terms) + f" <= {SCALE}\n")
            f.write("Binary\n" + "\n".join(names) + "\nEnd\n")
        start = time.time()
        out = subprocess.run(["cbc", folder + "/model.lp", "sec", str(limit), "ratio", "0", "allow", "0", "solve"],
                             check=True, capture_output=True, text=True, timeout=10 * limit).stdout
        seconds = time.time() - start
    found = re.search(r"Objective value:\s+(\S+)", out)
    return seconds, abs(float(found.group(1))) if found else None, "Result - Optimal solution found" in out


def ours(n, work):
    out = subprocess.run([plan, "real", str(n), str(SEED), "optimal", str(work)], check=True, capture_output=True, text=True).stdout
    number = lambda what: float(re.search(what, out).group(1))
    return number(r"(\S+) s  utility"), number(r"utility (\S+)"), number(r"bound (\S+)")


failed = False
print("| contexts | solver | seconds | times ours | utility | below our bound | |\n| --- | --- | --- | --- | --- | --- | --- |")
for n in SIZES:
    capacity, candidates = instance(n)
    seconds, utility, bound = ours(n, 0)
    print(f"| {n} | ours | {seconds:.3f} | 1 | {utility:.9g} | {1 - utility / bound:.2e} | proven |", flush=True)
    longer, better, _ = ours(n, WORK)
    print(f"| {n} | ours, `--seconds 1` | {longer:.3f} | {longer / seconds:.1f} | {better:.9g} | {1 - better / bound:.2e} | |",
          flush=True)
    for name, solve in (("HiGHS", highs), ("CBC", cbc)):
        took, value, finished = solve(capacity, candidates)
        if value is None:
            print(f"| {n} | {name} | {took:.2f} | {took / seconds:.0f} | none | | stopped |", flush=True)
            continue
        between = max(utility, better) <= value * (1 + TOLERANCE) and value <= bound * (1 + TOLERANCE)
        failed |= finished and not between
        verdict = "stopped" if not finished else "optimal" if between else "NOT between our plan and our bound"
        print(f"| {n} | {name} | {took:.2f} | {took / seconds:.0f} | {value:.9g} | {1 - value / bound:.2e} | {verdict} |", flush=True)
sys.exit(failed)
