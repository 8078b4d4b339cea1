#!/usr/bin/env python3
"""roofline.py [OPTION...] - what a profile must move and compute, op by op, and how long that takes a GPU at best.

    roofline.py                                   one context of 32768 tokens of synthetic:llama-3.1-8b
    roofline.py --tokens 4096 --gpu h200          other sizes, one GPU
    roofline.py --measured FILE.json              what tests/bench/job measured
    roofline.py --write tests/bench/roofline.md          renews the tables of that page; --check: are they up to date?

It runs no op. It walks through the passes of the engine (engine/transformer/session.c, engine/transformer/decode.c) and the methods' ops
(methods/, variants/) with the shapes alone, and counts as kernels/around.h does: two operations for each multiplication and
addition in a product; operands read and results written, each once. tests/golden/roofline compares the counts with those
of a run. An op takes at least max(operations / peak rate, bytes / bandwidth).
"""
import argparse, collections, functools, json, math, os, re, sys

# ---- devices and the design ---------------------------------------------------------

# Published: dense bf16 operations and bytes per second. ATTAINABLE: what an H200 sustained of them on 2026-11-27, 784
# TFLOP/s of a product of random numbers and 4.22 TB/s of a copy of 8 GB; the same is assumed of the others.
GPUS = {"h200": ("H200 SXM", 989.4e12, 4.8e12), "h100": ("H100 SXM", 989.4e12, 3.35e12),
        "a100": ("A100 SXM 80 GB", 312e12, 2.039e12)}
ATTAINABLE = {"flop": 0.7924, "bytes": 0.8792}

# The share of its ceiling that an op reached that day, by (phase, op), or by op (tests/bench/results/2026-11-27-h200.md,
# the steps ops and, for moe, experts). Each call is 7.4 us shorter than there: an op that is timed waits for the last one,
# and with so much less all ops together take the 10.92 s of the job that is not timed. A question alone: from its
# products of 32 rows.
SHARE = {("question", "gemm"): 0.31, "gemm": 0.99, "attend text": 0.60, "attend shared": 0.38, "attend own": 0.34,
         "column_stats": 0.36, "moe": 0.31, "best": 0.83, "gate_mul": 0.93, "rmsnorm": 0.88, "rope": 0.52, "gather": 0.94,
         "copy": 0.83, "quantise": 0.155, "dequantise": 0.38, "key_norms": 0.87, "key_cosines": 0.34, "top_k": 0.16,
         "joint_counts": 0.025}
BANDWIDTH_SHARE = 0.5  # of the small ones

# L layers, D width, H query heads, G key-value heads, K columns of a head, F of the MLP, V vocabulary; E experts, U of
# them used, X columns of one.
MODELS = {
    "llama-3.1-8b": dict(L=32, D=4096, H=32, G=8, K=128, F=14336, V=128256),
    "smollm2-135m": dict(L=30, D=576, H=9, G=3, K=64, F=1536, V=49152),
    "qwen3-30b-a3b": dict(L=48, D=2048, H=32, G=4, K=128, V=151936, E=128, U=8, X=768),
    "tiny-experts": dict(L=2, D=128, H=4, G=2, K=64, V=512, E=8, U=2, X=64),
    "tiny": dict(L=2, D=128, H=4, G=2, K=64, F=256, V=512),
}
# 40 variants that keep 0.41 of the pairs on average, every method among them.
CONFIGS = ",".join(f"{method}:drop={drop}" for method in
                   ("knorm", "keydiff", "tova", "snapkv", "pyramidkv", "adakv+snapkv")
                   for drop in ("0.3", "0.5", "0.6", "0.7", "0.8", "0.9")) + ",h2o:drop=0.8,kivi:bits=4,kivi:bits=2"
HOST_OPS = ("read", "write", "repeat")  # between host and device: not counted
PHASES = ("prefill", "variants", "question", "answers")


class Job:
    """Counts ops of one context. cost[phase, op] = [calls, operations, bytes]. lists[phase, op] = [launches, blocks,
    turns and bytes of states of the largest job]. trace, if it is a list: of each pass its layers' jobs of attention,
    (kind, spans, AttendList)."""

    def __init__(self, a, trace=None):
        self.m, self.a = dict(E=0, F=0) | MODELS[a.model.removeprefix("synthetic:")], a
        self.e = {"bf16": 2, "f32": 4}[a.dtype]
        self.configs = parse_configs(a.configs)
        self.cost, self.lists, self.phase, self.trace = {}, {}, None, trace

    def op(self, name, flop, bytes_, calls=1):
        c = self.cost.setdefault((self.phase, name), [0, 0.0, 0.0])
        for i, x in enumerate((calls, flop, bytes_)):
            c[i] += x

    # ---- one pass: engine/transformer/forward.c -------------------------------------------------

    def gemm(self, n, out, width, add=False):
        e = self.e
        self.op("gemm", 2 * n * out * width, n * width * e + out * width * e + n * out * (8 if add else e))

    def rmsnorm(self, n):
        self.op("rmsnorm", 0, n * self.m["D"] * (4 + self.e))

    def blocks(self, kind, spans):
        """Counts the launches of a job: spans (rows, keys of each head)."""
        m = self.m
        sizes = (m["H"], m["G"], m["K"], self.a.dtype, self.a.pass_rows, self.a.memory << 30)
        work = attend_list(kind, tuple(spans), sizes)
        c = self.lists.setdefault((self.phase, "attend " + kind), [0, 0, 0, 0])
        c[0] += work.launches
        c[1] += work.items + work.merges
        c[2:] = [max(c[2], work.turns), max(c[3], work.states * 4 * (m["K"] + 2))]
        if self.trace is not None:
            self.trace[-1][-1].append((kind, tuple(spans), work))

    def attend(self, name, n, pairs, keys, results, merged=False):
        """results: bytes per row and column written, and lse. merged: with another result, which is read."""
        m, rows = self.m, n * self.m["H"]
        out, part, lse = results
        self.op(name, 4 * m["K"] * pairs, self.e * m["K"] * (rows + 2 * keys) + rows * (
            (self.e * m["K"] if out else 0) + (4 * m["K"] if part else 0) + (4 if lse else 0) +
            (4 * (m["K"] + 1) if merged else 0)))

    def own(self, spans):
        """Pairs and keys of spans (rows, keys) whose last keys are their own."""
        m, pairs, keys = self.m, 0, 0
        for rows, n in spans:
            own = min(rows, n)
            pairs += m["H"] * (rows * (n - own) + own * (own + 1) // 2)
            keys += m["G"] * n
        return pairs, keys

    def column_stats(self, n, pairs, keys, add):
        m = self.m
        self.op("column_stats", 2 * m["K"] * pairs,
                self.e * m["K"] * (n * m["H"] + keys) + 4 * n * m["H"] + (8 if add else 4) * keys)

    def forward(self, spans, shared=(), cache=False, columns=False, window=0):
        """A pass: own spans, shared spans (rows, config); cache: to the last keys; window: its tokens that are saved."""
        m, e = self.m, self.e
        n, HK = sum(rows for rows, _ in spans), m["H"] * m["K"]
        width = (m["H"] + 2 * m["G"]) * m["K"]
        pairs, keys = self.own(spans)
        self.op("embed", 0, n * m["D"] * (2 + 4))
        if self.trace is not None:
            self.trace.append([])
        for layer in range(m["L"]):
            if self.trace is not None:
                self.trace[-1].append([])
            self.rmsnorm(n)
            self.gemm(n, width, m["D"])
            self.op("rope", 0, 2 * n * width * e + 4 * n * m["K"])
            if window:
                self.op("copy", 0, 2 * window * HK * e, m["G"])
            if cache and layer == m["L"] - 1:
                if columns:
                    self.attend("attend text", n, pairs, keys, (0, 0, 1))
                    self.blocks("text", spans)
                    self.column_stats(n, pairs, keys, True)
                break
            kind = "attend text" if cache else "attend own"
            if shared:
                group, s_pairs, s_keys = m["H"] // m["G"], 0, 0
                for rows, config in shared:
                    kept = m["G"] * self.kept(config, layer)
                    s_pairs += rows * group * kept
                    s_keys += kept
                self.attend("attend shared", n, s_pairs, s_keys, (0, 1, 1))
                self.blocks("shared", [(rows, self.kept(config, layer)) for rows, config in shared])
                self.attend(kind, n, pairs, keys, (1, 0, 0), merged=True)
            else:
                self.attend(kind, n, pairs, keys, (1, 0, columns))
                if columns:
                    self.column_stats(n, pairs, keys, True)
            self.blocks(kind.removeprefix("attend "), spans)
            self.gemm(n, m["D"], HK, add=True)
            self.rmsnorm(n)
            if m["E"]:
                self.moe(n)
            else:
                self.gemm(n, 2 * m["F"], m["D"])
                self.op("gate_mul", 0, n * 3 * m["F"] * e)
                self.gemm(n, m["D"], m["F"], add=True)

    def moe(self, n):
        m, expert = self.m, 3 * self.m["X"] * self.m["D"]
        self.op("moe", 2 * n * (m["E"] * m["D"] + m["U"] * expert), self.e * (
            m["E"] * m["D"] + min(n * m["U"], m["E"]) * expert + n * m["D"]) + 8 * n * m["D"])

    def best(self, n):
        m = self.m
        self.op("embed", 0, 8 * n * m["D"])
        self.rmsnorm(n)
        self.op("best", 2 * n * m["V"] * m["D"], (n + m["V"]) * m["D"] * self.e + 12 * n)

    # ---- prefill: engine/transformer/session.c ----------------------------------------------------

    def prefill(self):
        S, R = self.a.tokens, self.a.pass_rows
        methods = {stage[0] for config in self.configs for stage in config}
        window = min(S, 64 if methods & {"snapkv", "pyramidkv"} else 1 if "tova" in methods else 0)
        self.phase = "prefill"
        for first in range(0, S, R):
            n = min(R, S - first)
            self.forward([(n, first + n)], cache=True, columns="h2o" in methods,
                         window=max(0, first + n - max(first, S - window)))

    # ---- variants: methods/, variants/ -------------------------------------------------------------

    def kept(self, config, layer):
        """config_n_keep() of variants/sizes.c: rows that each head of a layer keeps."""
        S = self.a.tokens
        for method, value in config:
            if method == "pyramidkv":
                return pyramid(S, value["drop"], self.m["L"], layer)
            if method not in ("kivi", "adakv"):
                return max(1, int(S * (1.0 - value["drop"])))
        return S

    def score(self, method):
        m, e, S, heads = self.m, self.e, self.a.tokens, self.m["L"] * self.m["G"]
        if method in ("knorm", "keydiff"):
            self.op("key_norms" if method == "knorm" else "key_cosines", 0, heads * S * (e * m["K"] + 4))
        if method in ("snapkv", "tova"):
            w = min(S, 1 if method == "tova" else 64)
            if method == "tova" or w < S:
                pairs, keys = self.own([(w, S)])
                for _ in range(m["L"]):
                    if self.trace is not None:
                        self.trace.append([[]])
                    self.attend("attend text", w, pairs, keys, (0, 0, 1))
                    self.blocks("text", [(w, S)])
                    self.column_stats(w, pairs, keys, False)
                if method == "tova":
                    self.op("mean_heads", 0, 8 * heads * S)
                else:
                    self.op("avg_pool", 0, 8 * heads * (S - w))
        if method == "h2o":
            self.op("copy", 0, 8 * heads * S)
            self.op("scale_columns", 0, 8 * heads * S + 4 * S)

    def variant(self, config):
        m, e, S = self.m, self.e, self.a.tokens
        heads, methods = m["L"] * m["G"], [stage[0] for stage in config]
        rows = sum(m["G"] * self.kept(config, layer) for layer in range(m["L"]))
        if "adakv" in methods:
            self.op("joint_counts", 0, m["L"] * 4 * (m["G"] * S + m["G"]))
        if set(methods) - {"adakv", "kivi"}:
            self.op("top_k", 0, 4 * heads * S + 4 * rows)
            self.op("gather", 0, 4 * rows + 4 * e * rows * m["K"])
        elif "kivi" in methods:
            self.op("copy", 0, 4 * e * rows * m["K"], 2 * heads)
        for method, value in config:
            if method == "kivi":
                self.quantise(config, value)

    def quantise(self, config, value):
        m, group, residual = self.m, value.get("group", 32), value.get("residual", 32)
        for layer in range(m["L"]):
            n = self.kept(config, layer)
            numbers = m["G"] * m["K"] * (n - n % residual + max(0, n - residual))
            calls = math.ceil(2 * m["G"] / 64)
            for name in ("quantise", "dequantise"):
                self.op(name, 0, numbers * (self.e + value["bits"] / 8 + 4 / group), calls)

    def variants(self):
        self.phase = "variants"
        scorers = [stage[0].replace("pyramidkv", "snapkv") for config in self.configs for stage in config]
        for method in dict.fromkeys(scorers):  # pyramidkv keeps by snapkv's scores
            self.score(method)
        for config in self.configs:
            self.variant(config)

    # ---- answers: engine/transformer/decode.c ---------------------------------------------------------

    def question(self):
        """One question alone, three times twice: time_question() in profiler/run/run.c, session_question_s()."""
        q, R = self.a.question_tokens, self.a.pass_rows
        self.phase = "question"
        for _ in range(6):
            for first in range(0, q, R):
                n = min(R, q - first)
                self.forward([(n, first + n)], [(n, self.configs[0])])
            self.best(1)

    def prefixes(self, group):
        """What all questions begin with, once per variant."""
        n, R, spans, shared = self.a.shared, self.a.pass_rows, [], []
        for config in group:
            done = 0
            while done < n:
                some = min(n - done, R - sum(rows for rows, _ in spans))
                done += some
                spans.append((some, done))
                shared.append((some, config))
                if sum(rows for rows, _ in spans) == R or (config is group[-1] and done == n):
                    self.forward(spans, shared)
                    spans, shared = [], []

    def answers(self):
        m, a = self.m, self.a
        self.phase = "answers"
        for first in range(0, len(self.configs), a.variants_at_once):
            group = self.configs[first:first + a.variants_at_once]
            self.prefixes(group)
            waiting = [config for config in group for _ in range(a.questions)]
            live = []  # [config, keys, tokens answered]
            while live or waiting:
                now = waiting[:a.pass_rows - len(live)]
                waiting = waiting[len(now):]
                live += [[config, a.shared, 0] for config in now]
                for config in dict.fromkeys(map(id, now)) if a.shared else ():
                    n_to = sum(id(c) == config for c in now)
                    self.op("copy_slots", 0, 2 * a.shared * m["K"] * m["L"] * m["G"] * self.e * (1 + n_to))
                live = self.answer_pass(live)

    def answer_pass(self, live):
        """Question tokens if there are any, else a token of every sequence: fill_pass() and take_tokens()."""
        left, spans, shared, picks = self.a.pass_rows, [], [], 0
        asking = any(s[1] < self.a.question_tokens for s in live)
        for s in live:
            todo = self.a.question_tokens - s[1]
            n = min(todo, left) if asking else 1
            if n <= 0:
                continue
            left -= n
            s[1] += n
            spans.append((n, s[1]))
            if shared and shared[-1][1] is s[0]:
                shared[-1][0] += n
            else:
                shared.append([n, s[0]])
            if n >= todo:
                picks += 1
                s[2] += 1
        self.forward(spans, shared)
        self.best(picks)
        return [s for s in live if s[2] < self.a.new_tokens]

    def run(self):
        self.prefill()
        self.variants()
        self.question()
        self.answers()
        return self


# ---- the lists of attention: kernels/cuda/cuda_attend_list.cu --------------------------------

SPLIT, MAX_PIECES, FULL_ROWS, MERGE_ROWS = 1024, 8, 16384, 16  # of kernels/backend.h and cuda_attend_internal.h
STATE_BYTES, ALIGN = 640 << 20, 256


# Of a job: blocks that compute pieces, blocks that merge them, states of the largest turn, turns, launches.
AttendList = collections.namedtuple("AttendList", "items merges states turns launches")


def attend_pieces(kind, rows, keys, heads):
    """(keys of a piece, pieces): attend_piece_keys()."""
    if kind == "own" or keys <= SPLIT or (kind != "shared" and rows * heads >= FULL_ROWS):
        return max(keys, 1), 1
    size = SPLIT
    while (keys - 1) // size >= MAX_PIECES:
        size *= 2
    return size, (keys - 1) // size + 1


def tile_rows(rows, dtype):
    """attend_tensor_rows(), PLAIN_ROWS"""
    return 16 if dtype == "f32" or rows <= 16 else 64 if rows <= 64 else 128


def most_states(H, K, pass_rows, memory):
    """States of a turn: what cuda_attend_bytes() plans."""
    return (min(pass_rows * H * MAX_PIECES * 4 * (K + 2) + 3 * ALIGN, STATE_BYTES, memory // 64) - 3 * ALIGN) // (4 * (K + 2))


@functools.lru_cache(256)
def attend_list(kind, spans, sizes):
    """spans: (rows, keys of each kv head); the last keys of own and text are those of the rows."""
    H, G, K, dtype, pass_rows, memory = sizes
    group, most = H // G, most_states(H, K, pass_rows, memory)
    tile = tile_rows(max(rows for rows, _ in spans) * group, dtype)
    items = merges = largest = states = turns = 0
    for tokens, keys in spans:
        rows, (size, pieces) = tokens * group, attend_pieces(kind, tokens, keys, H)
        tiles = -(-rows // tile)
        if pieces == 1:
            items += G * tiles
            continue
        for first in range(0, rows, tile):
            last = min(first + tile, rows) - 1
            seen = keys if kind == "shared" else keys - tokens + last // group + 1
            items += G * max(1, -(-seen // size))
        merges += G * -(-rows // MERGE_ROWS)
        for _ in range(G):  # fitting()
            first = 0
            while first < rows:
                some = (most - states) // pieces
                end = rows if rows - first <= some else min(rows, first + max(some // tile, states == 0) * tile)
                states += (end - first) * pieces
                largest = max(largest, states)
                if end < rows:
                    turns, states = turns + 1, 0
                first = end
    turns += states > 0 or turns == 0
    return AttendList(items, merges, largest, turns, turns + (turns if merges else 0))


def pyramid(S, drop, L, layer, window=64, beta=20):
    budget = window + S * (1 - drop) - window
    low = budget / beta
    high = budget * 2 - low
    if high >= S - window:
        high = S - window
        low = budget * 2 - high
    if not S >= high >= low >= window:
        return int(max(1, round(S * (1 - drop))))
    return int(round(high - layer * ((high - low) / (L - 1) if L > 1 else 0)))


def parse_configs(text):
    """[[(method, {name: number})]] of a list without ranges; the uncompressed cache first."""
    configs = [[]]
    for config in text.split(","):
        stages = []
        for stage in config.split("+"):
            method, *values = stage.split(":")
            stages.append((method, {name: float(value) for name, value in (v.split("=") for v in values)}))
        if config != "none":
            configs.append(stages)
    return configs


# ---- tables ----------------------------------------------------------------------------

def ceilings(name):
    """(operations, bytes) per second that an op can reach on a GPU."""
    return GPUS[name][1] * ATTAINABLE["flop"], GPUS[name][2] * ATTAINABLE["bytes"]


def floor(cost, ceiling):
    return max(cost[1] / ceiling[0], cost[2] / ceiling[1])


def bound(cost, ceiling):
    return "operations" if cost[1] / ceiling[0] > cost[2] / ceiling[1] else "bytes"


def share(phase, op):
    return SHARE.get((phase, op), SHARE.get(op, BANDWIDTH_SHARE))


def quantity(x, unit):
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if x >= factor:
            return f"{x / factor:.3g} {prefix}{unit}"
    return f"{x:.3g} {unit}" if x else "-"


def seconds(x):
    return f"{x:.3g} s" if x >= 1 else f"{x * 1e3:.3g} ms" if x >= 1e-3 else f"{x * 1e6:.3g} us"


def table(head, rows):
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in [head, ["---"] * len(head), *rows])


def job_text(a):
    return (f"{a.model}, {a.dtype}: {a.tokens} tokens, {1 + len(a.configs.split(','))} variants "
            f"({a.variants_at_once} at once), {a.questions} questions of {a.question_tokens} tokens, answers of "
            f"{a.new_tokens}; {a.pass_rows} tokens a pass")


def design_table(job, gpus):
    """Per phase and op, the largest first; for the first GPU also what bounds it and what is expected."""
    first = ceilings(gpus[0])
    name = GPUS[gpus[0]][0]
    head = ["phase", "op", "calls", "operations", "bytes", "op/byte", f"{name} at best", "bound by", "share", "expected"]
    head += [f"{GPUS[g][0]} at best" for g in gpus[1:]]
    rows, totals = [], [0.0] * (1 + len(gpus))
    for phase in PHASES:
        costs = [(op, c) for (p, op), c in job.cost.items() if p == phase]
        for op, c in sorted(costs, key=lambda x: -floor(x[1], first)):
            limit = bound(c, first)
            part = share(phase, op)
            times = [floor(c, first), floor(c, first) / part] + [floor(c, ceilings(g)) for g in gpus[1:]]
            totals = [t + x for t, x in zip(totals, times)]
            rows.append([phase, op, c[0], quantity(c[1], "FLOP"), quantity(c[2], "B"), f"{c[1] / c[2]:.0f}",
                         seconds(times[0]), limit, f"{part:.0%}", seconds(times[1]), *map(seconds, times[2:])])
    rows.append(["all", "", "", "", "", "", seconds(totals[0]), "", "", seconds(totals[1]), *map(seconds, totals[2:])])
    return table(head, rows)


def list_table(job):
    """The launches of attention; no block is without work."""
    return table(["phase", "op", "launches", "blocks", "turns of a job", "states"],
                 [[phase, op, *c[:3], quantity(c[3], "B")] for phase in PHASES
                  for (p, op), c in sorted(job.lists.items()) if p == phase])


def ceiling_table(gpus):
    return table(["GPU", "bf16, published", "memory, published", "product, sustained", "copy, sustained", "ridge"],
                 [[GPUS[g][0], quantity(GPUS[g][1], "FLOP/s"), quantity(GPUS[g][2], "B/s"),
                   quantity(ceilings(g)[0], "FLOP/s"), quantity(ceilings(g)[1], "B/s"),
                   f"{ceilings(g)[0] / ceilings(g)[1]:.0f} op/byte"] for g in gpus])


def measured_table(measured):
    """Of a file of tests/bench/job with ops, and its ceilings where they were measured: rates and shares."""
    flop, bytes_ = measured.get("gemm_flop_per_s"), measured.get("copy_bytes_per_s")
    rows = []
    for context in measured["contexts"]:
        for op in context["ops"]:
            s = max(op["seconds"] - op["calls"] * measured["clock_s"], 1e-9)
            part = max(op["flop"] / flop, op["bytes"] / bytes_) / s if flop and bytes_ else None
            limit = "-" if part is None else bound((0, op["flop"], op["bytes"]), (flop, bytes_))
            rows.append([context["n_tokens"], op["phase"], op["op"], op["calls"], seconds(s),
                         quantity(op["flop"] / s, "FLOP/s"), quantity(op["bytes"] / s, "B/s"),
                         limit, "-" if part is None else f"{part:.1%}"])
    return table(["tokens", "phase", "op", "calls", "time", "operations", "bytes", "bound by", "share of ceiling"], rows)


def compare(measured):
    """Differences between the counts of each context of a measured file and those from its shapes, as lines."""
    said = []
    for context in measured["contexts"]:
        a = options(["--model", measured["model"], "--dtype", measured["dtype"], "--configs", measured["configs"]])
        a.tokens, a.questions, a.shared = context["n_tokens"], context["n_questions"], context["shared_tokens"]
        a.question_tokens, a.new_tokens = context["question_tokens"], measured["new_tokens"]
        a.pass_rows = measured["pass_rows"]
        want, got = {}, {}
        for (phase, op), c in Job(a).run().cost.items():
            sums = want.setdefault(("answers" if phase == "question" else phase, op), [0, 0, 0])
            sums[:] = [x + y for x, y in zip(sums, c)]
        for op in context["ops"]:
            if op["op"] not in HOST_OPS:
                got[op["phase"], op["op"]] = [op["calls"], op["flop"], op["bytes"]]
        for key in sorted(want.keys() | got.keys()):
            x, y = want.get(key, [0, 0, 0]), got.get(key, [0, 0, 0])
            said += [f"{a.tokens} tokens, {key[0]}, {key[1]}: {name} {j:.0f}, from the shapes {i:.0f}"
                     for name, i, j in zip(("calls", "operations", "bytes"), x, y) if abs(i - j) > 1e-9 * max(i, j)]
    return said


# ---- the page ------------------------------------------------------------------------------

def renew(text, run):
    """Every block of a page between `<!-- COMMAND -->` and `<!-- end -->` becomes what the command prints."""
    def block(match):
        return f"<!-- {match[1]} -->\n{run(match[1].split()[1:])}\n<!-- end -->"
    return re.sub(r"<!-- (tests/bench/roofline\.py[^\n]*) -->\n.*?<!-- end -->", block, text, flags=re.S)


def options(words):
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0], epilog="\n".join(__doc__.split("\n")[1:]),
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", default="synthetic:llama-3.1-8b", help="one of " + ", ".join(MODELS))
    p.add_argument("--dtype", default="bf16", choices=("bf16", "f32"))
    p.add_argument("--tokens", type=int, default=32768, help="of the context")
    p.add_argument("--configs", default=CONFIGS, help="without ranges; the uncompressed cache is always among them")
    p.add_argument("--questions", type=int, default=50)
    p.add_argument("--question-tokens", type=int, default=32)
    p.add_argument("--shared", type=int, default=0, help="leading tokens that all questions have in common")
    p.add_argument("--new-tokens", type=int, default=64, help="of an answer")
    p.add_argument("--variants-at-once", type=int, default=40)
    p.add_argument("--pass-rows", type=int, default=4096, help="tokens of a pass")  # PASS_ROWS of kernels/cuda/cuda.cu
    p.add_argument("--memory", type=int, default=80, help="of the GPU, in GiB: a 64th of it may hold states of attention")
    p.add_argument("--gpu", action="append", choices=GPUS, help="default: all")
    p.add_argument("--ceilings", action="store_true", help="print the GPUs' ceilings alone")
    p.add_argument("--json", action="store_true", help="print the counts as JSON")
    p.add_argument("--measured", metavar="FILE", help="print what tests/bench/job measured")
    p.add_argument("--compare", metavar="FILE", help="are the counts of a measured file those from its shapes?")
    p.add_argument("--write", metavar="PAGE", help="renew the tables of a page")
    p.add_argument("--check", metavar="PAGE", help="status 1 when --write would change it")
    a = p.parse_args(words)
    if a.model.removeprefix("synthetic:") not in MODELS:
        p.error(f"there is no model '{a.model}'")
    return a


def show(a):
    if a.ceilings:
        return ceiling_table(a.gpu or list(GPUS))
    if a.measured:
        with open(a.measured) as f:
            measured = json.load(f)
        return measured_table(measured)
    job = Job(a).run()
    if a.json:
        return json.dumps([dict(phase=phase, op=op, calls=c[0], flop=c[1], bytes=c[2])
                           for (phase, op), c in job.cost.items()])
    return f"{job_text(a)}\n\n{design_table(job, a.gpu or list(GPUS))}\n\n{list_table(job)}"


def main():
    a = options(sys.argv[1:])
    if a.compare:
        with open(a.compare) as f:
            said = compare(json.load(f))
        print("\n".join(said) or "the counts are those from the shapes")
        return said != []
    if not a.write and not a.check:
        print(show(a))
        return 0
    page = a.write or a.check
    with open(page) as f:
        old = f.read()
    new = renew(old, lambda words: show(options(words)))
    if a.check:
        if new != old:
            print(f"{page} is out of date; run tests/bench/roofline.py --write {page}", file=sys.stderr)
        return new != old
    with open(page, "w") as f:
        f.write(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
