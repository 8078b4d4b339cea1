"""compare.py - what the host code of the cuda backend queues for the attention of a whole job, that of
tests/bench/roofline.md, against what tests/bench/roofline.py counts: launches, items, states and turns of every job,
and how often a list is made in a pass. A layer has 8 launches at most where all its states fit. lists.cu checks that
each row and key of a job are in exactly one block.
"""
import os, subprocess, sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import roofline

# Spans and heads of very different lengths, rows that see a part of the pieces, rows without keys.
RAGGED = """pass
layer
shared 50:32768 1:22937 700:16384,100,0,5000,1,1025,1024,9000 3:7
own 1:64 400:100 4:1
pass
layer
text 300:3000
own 500:1030
pass
layer
text 500:1030 3:2 1:0
"""
LARGE, SMALL = 80, 8  # GiB of a device


def text_of(trace, layers):
    """Some layers of the passes of a trace as lists.cu reads them, and what is expected of each line that it prints."""
    lines, expected = [], []
    for one_pass in trace:
        lines.append("pass")
        listed = {}
        for layer in [one_pass[i] for i in layers] if len(one_pass) > 1 else one_pass:
            lines.append("layer")
            for kind, spans, work in layer:
                lines.append(kind + " " + " ".join(f"{rows}:{keys}" for rows, keys in spans))
                made = int(listed.get(kind) != spans)
                listed[kind] = spans
                expected.append(f"{work.launches} {work.items} {work.merges} "
                                f"{work.states} {work.turns} {made}")
            expected.append("layer")
    return "\n".join(lines) + "\n", expected


def run(program, a, m, text):
    done = subprocess.run([program, *(str(m[x]) for x in "HGK"), str(a.pass_rows), str(a.tokens)], input=text,
                          capture_output=True, text=True, errors="replace",
                          env=dict(os.environ, EMU_RUN="0", EMU_MEMORY=str(a.memory << 30)))
    return done.stdout.splitlines(), done.stderr


def compare_on(program, memory):
    trace = []
    a = roofline.options(["--memory", str(memory)])
    m = roofline.Job(a, trace).run().m
    text, expected = text_of(trace, [0, 1, m["L"] // 2, m["L"] - 2])
    got, said = run(program, a, m, text)
    ragged = run(program, a, m, RAGGED)
    if said or ragged[1] or len(got) != len(expected):
        return [said, ragged[1], f"{len(got)} lines of {len(expected)}"]
    wrong = [f"{memory} GiB: {line}, and roofline.py counts {want}" for line, want in zip(got, expected)
             if line != want and not (want == "layer" and line.startswith("layer "))]
    most = max(int(line.split()[1]) for line in got if line.startswith("layer "))
    several = any(line.split()[-2] != "1" for line in got if not line.startswith("layer "))
    if memory == LARGE and (most > 8 or several):
        wrong.append(f"{memory} GiB: a layer has {most} launches")
    if memory == SMALL and not several:
        wrong.append(f"{memory} GiB: no job took several turns")
    return wrong


def compare(program):
    """(passed, what was said)."""
    wrong = compare_on(program, LARGE) + compare_on(program, SMALL)
    return not wrong, "\n".join(wrong[:20])
