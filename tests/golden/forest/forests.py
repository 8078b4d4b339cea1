"""forests.py - random forests of contexts, as text for solve.c and as an integer program for HiGHS (highspy).

    forests.py make FILE        writes the golden set: 50 forests of 10 to 40 nodes, and the optimum of each, by HiGHS

The program says what planner/forest.h says: a node is stored, or served by its own chunks, by what serves its parent, or
by nothing. use[v][s] is 1 if state s serves node v: ("own", a, o): context a, stored as option o; ("part", t): chunks
on tier t of the node itself or one above; "none".
"""
import math, random, sys


def forest(r):
    """Number of configs and tiers, do chunks serve, capacities (None: unlimited); of each node: parent, uses, gain of chunks
    on each tier, and None or the context: recompute, bytes of each config, utilities and gains below [config][tier]."""
    n, configs, tiers, chunks = r.randint(10, 40), r.randint(1, 3), r.randint(1, 2), r.random() < 0.5
    speed = [r.uniform(0.02, 0.1) * 4**t for t in range(tiers)]
    parent, tokens, nodes = [], [], []
    for v in range(n):
        up = v - 1
        while up >= 0 and r.random() < 0.4:
            up = parent[up]
        parent.append(up)
        tokens.append((tokens[up] if up >= 0 else 0) + r.randint(1, 20))
    for v in range(n):
        inner = any(p == v for p in parent)
        is_context = not inner or r.random() < 0.7
        uses = r.choice((0, 1, 1, 2, 5, 20)) * r.random() if is_context else 0
        part = [round(tokens[v] * (1 - speed[t]), 6) for t in range(tiers)]
        context = None
        if is_context:
            sizes = [max(1, tokens[v] * (configs - c) // configs) for c in range(configs)]
            lost = [0] + sorted(r.uniform(0, 10) for _ in range(configs - 1))
            gain = [[round(tokens[v] - speed[t] * sizes[c] - lost[c], 6) for t in range(tiers)] for c in range(configs)]
            recompute = round(-uses * tokens[v], 6)
            context = recompute, sizes, [[round(recompute + uses * g, 6) for g in row] for row in gain], gain
        nodes.append((parent[v], round(uses, 6), part, context))
    total = sum(tokens)
    capacity = [None if r.random() < 0.1 else r.randint(0, max(1, int(total * r.random() * 0.4))) for _ in range(tiers)]
    return configs, tiers, chunks, capacity, nodes


def text(f):
    configs, tiers, chunks, capacity, nodes = f
    lines = [f"{len(nodes)} {configs} {tiers} {int(chunks)} " + " ".join("-1" if c is None else str(c) for c in capacity)]
    for parent, uses, part, context in nodes:
        numbers = [parent, int(context is not None), uses, *part]
        if context:
            recompute, sizes, utility, gain = context
            numbers += [recompute, *sizes, *(u for row in utility for u in row), *(g for row in gain for g in row)]
        lines.append(" ".join(map(str, numbers)))
    return "\n".join(lines) + "\n"


def highs(f, seconds):
    """The optimum of a forest; None if HiGHS needs more than so many seconds."""
    import highspy
    configs, tiers, chunks, capacity, nodes = f
    h = highspy.Highs()
    for name, setting in (("output_flag", False), ("mip_rel_gap", 0.0), ("mip_abs_gap", 0.0), ("time_limit", seconds)):
        h.setOptionValue(name, setting)
    options = [(c, t) for c in range(configs) for t in range(tiers)]
    binary = lambda: h.addBinary()
    stored, served, value, used = {}, {}, [], [[] for _ in range(tiers)]
    below = [[] for _ in nodes]  # of each node: uncompressed caches in its subtree, by tier
    for v, (parent, uses, part, context) in enumerate(nodes):
        for o in options if context else ():
            if capacity[o[1]] is None or context[1][o[0]] <= capacity[o[1]]:
                stored[v, o] = binary()
                value.append(context[2][o[0]][o[1]] * stored[v, o])
                used[o[1]].append(context[1][o[0]] * stored[v, o])
                for u in [v, *above(nodes, v)] if o[0] == 0 and chunks else ():
                    below[u].append((o[1], stored[v, o]))
    for v, (parent, uses, part, context) in enumerate(nodes):
        mine = [x for (u, o), x in stored.items() if u == v]
        states = dict(served[parent]) if parent >= 0 else {"none": (None, 0.0)}
        for (u, o), x in stored.items():
            if u == parent:
                states["own", u, o] = (x, nodes[u][3][3][o[0]][o[1]])
        inherited = {s: (binary(), g) for s, (_, g) in states.items()}
        for s, (from_above, _) in states.items():  # only what serves the parent
            if from_above is not None:
                h.addConstr(inherited[s][0] <= from_above)
        own = {("part", v, t): (binary(), part[t]) for t in range(tiers)} if below[v] else {}
        for t, x in below[v]:  # chunks come first, those of the fastest tier
            for s, (y, _) in inherited.items():
                h.addConstr(y <= 1 - x)
            for (_, _, other), (y, _) in own.items():
                if other > t:
                    h.addConstr(y <= 1 - x)
        for (_, _, t), (y, _) in own.items():
            h.addConstr(y <= sum((x for other, x in below[v] if other == t), 0 * y))
        served[v] = {**inherited, **own}
        h.addConstr(sum(mine, 0 * binary()) + sum(y for y, _ in served[v].values()) == 1)
        for y, g in served[v].values():
            value.append(((context[0] if context else 0) + uses * g) * y)
    for t in range(tiers):
        if capacity[t] is not None and used[t]:
            h.addConstr(sum(used[t]) <= capacity[t])
    h.maximize(sum(value))
    return h.getInfo().objective_function_value if h.getModelStatus() == highspy.HighsModelStatus.kOptimal else None


def above(nodes, v):
    while nodes[v][0] >= 0:
        v = nodes[v][0]
        yield v


if __name__ == "__main__" and sys.argv[1:2] == ["make"]:
    with open(sys.argv[2], "w") as out:
        made, k = 0, 0
        while made < 50:
            f = forest(random.Random(k))
            best = highs(f, 60)
            k += 1
            if best is None:
                print("left out: HiGHS needs too long", k, file=sys.stderr)
                continue
            made += 1
            out.write(f"{best!r}\n{text(f)}")
