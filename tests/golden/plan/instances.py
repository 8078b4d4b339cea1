"""instances.py - random placement problems, as text for solve.c and as an integer program for HiGHS (highspy).

    instances.py make FILE      writes the golden set: 30 small problems 5 of 33 to 46 contexts whose bound is far from the
                                optimum, 15 with pools of tiers, and the optimum of each, by HiGHS
"""
import math, random, sys

KINDS = ("uniform", "decreasing", "correlated", "ties", "tight", "table")


def problem(r, contexts, kind, pools=False):
    """Capacities, None: unlimited; of each context the utility of recomputing, bytes and utilities[config][tier]; of each
    tier the first tier of its pool, itself if it shares with none."""
    configs, tiers = r.randint(1, 6), r.randint(2, 6) if pools else r.randint(1, 3)
    rows, top = [], r.choice((10, 100, 10000))
    for _ in range(contexts):
        full, worth = r.randint(1, top) + configs, r.choice((1, 1, 2, 5, 20))
        sizes = [max(1, full * (configs - v) // configs) if kind == "table" else r.randint(1, top) for v in range(configs)]
        utilities = []
        for v in range(configs):
            row = []
            for t in range(tiers):
                u = {"uniform": r.uniform(-1, 1), "decreasing": r.random() / (1 + t),
                     "correlated": sizes[v] / top * (1 + 0.1 * r.random()) / (1 + t), "ties": 0.5,
                     "tight": r.random(), "table": worth * (1 - 0.3 * (v / configs) ** 2 * r.random() - 0.05 * t)}[kind]
                row.append(None if r.random() < 0.03 else round(u, 6))
            utilities.append(row)
        rows.append((round(r.uniform(-1, 0), 6), [-1 if r.random() < 0.05 else s for s in sizes], utilities))
    need = sum(max(sizes) for _, sizes, _ in rows)
    share = 0.05 if kind == "tight" else 0.5
    capacity = [None if r.random() < 0.05 else r.randint(0, max(1, int(need * share * r.random()))) for _ in range(tiers)]
    pool = list(range(tiers))
    for t in range(1, tiers if pools else 0):
        if r.random() < 0.6:
            pool[t] = pool[r.randrange(t)]
            capacity[t] = capacity[pool[t]]
    return capacity, rows, pool


def text(p):
    capacity, rows, pool = p
    number = lambda v: "nan" if v is None else repr(v)
    lines = [f"{len(rows)} {len(rows[0][1])} {len(capacity)} " + " ".join("-1" if c is None else str(c) for c in capacity) + " " + " ".join(map(str, pool))]
    for recompute, sizes, utilities in rows:
        lines.append(" ".join([number(recompute), *map(str, sizes), *(number(u) for row in utilities for u in row)]))
    return "\n".join(lines) + "\n"


class Answer:
    """What HiGHS says: whether it finished, its best plan's utility (None: it has none), its bound, the seconds it took."""

    def __init__(self, finished, utility, bound, took):
        self.finished, self.utility, self.bound, self.took = finished, utility, bound, took


def highs(p, seconds):
    """Solves a problem with HiGHS in so many seconds; see Answer."""
    import highspy, numpy, time
    capacity, rows, pool = p
    cost, starts, index, value, n = [], [0], [], [], len(rows)
    finite = [t for t, c in enumerate(capacity) if c is not None and pool[t] == t]  # one row for a pool
    for i, (recompute, sizes, utilities) in enumerate(rows):
        columns = [(recompute, None, 0)]
        columns += [(u, t, sizes[v]) for v, row in enumerate(utilities) for t, u in enumerate(row)
                    if u is not None and sizes[v] >= 0 and (capacity[t] is None or sizes[v] <= capacity[t])]
        for u, t, s in columns:
            cost.append(-u)
            index.append(i), value.append(1.0)
            if t is not None and capacity[t] is not None and s:
                index.append(n + finite.index(pool[t])), value.append(float(s))
            starts.append(len(index))
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(cost), n + len(finite)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = numpy.array(cost), numpy.zeros(len(cost)), numpy.ones(len(cost))
    lp.row_lower_ = numpy.array([1.0] * n + [0.0] * len(finite))
    lp.row_upper_ = numpy.array([1.0] * n + [float(capacity[t]) for t in finite])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = map(numpy.array, (starts, index, value))
    lp.integrality_ = [highspy.HighsVarType.kInteger] * len(cost)
    h = highspy.Highs()
    for name, setting in (("output_flag", False), ("mip_rel_gap", 0.0), ("mip_abs_gap", 0.0), ("time_limit", seconds),
                          ("mip_feasibility_tolerance", 1e-9), ("primal_feasibility_tolerance", 1e-9)):
        h.setOptionValue(name, setting)
    h.passModel(lp)
    start = time.process_time()
    h.run()
    took = time.process_time() - start
    finished = h.getModelStatus() == highspy.HighsModelStatus.kOptimal
    values = list(h.getSolution().col_value)
    found = finished or h.getInfo().primal_solution_status == 2
    chosen = [k for k, v in enumerate(values) if v > 0.5]  # whole numbers, up to HiGHS' tolerance
    return Answer(finished, -math.fsum(cost[k] for k in chosen) if found else None, -h.getInfo().mip_dual_bound, took)


def random_problem(k, most, seed, pools=False):
    r = random.Random(seed * 1000003 + k)
    return problem(r, r.randint(1, most), KINDS[k % len(KINDS)], pools)


def random_problems(n, most, seed, pools=False):
    return [random_problem(k, most, seed, pools) for k in range(n)]


if __name__ == "__main__" and sys.argv[1:2] == ["make"]:
    with open(sys.argv[2], "w") as f:
        hard = [random_problem(k, 60, 1) for k in (195, 201, 507, 752, 921)]
        for p in random_problems(30, 12, 7) + hard + random_problems(15, 12, 8, pools=True):
            answer = highs(p, 60)
            assert answer.finished
            f.write(f"{answer.utility!r}\n{text(p)}")
