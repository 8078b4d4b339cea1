# tests/README.md names every source file and every test program; what it names exists.
python3 - "$TOP" <<'PY'
import re, sys
from pathlib import Path

top = Path(sys.argv[1])
table = (top / "tests/README.md").read_text().split("## Which tests cover a source file")[1]
folders = "aiming base cmd datasets embed engine kernels loader methods planner profiler qgen report".split()
sources = {str(p.relative_to(top)) for f in folders for p in (top / f).rglob("*.c")}
named, tests = [], set()
for line in table.splitlines():
    cells = line.split(" | ")
    if line.startswith("| `") and len(cells) == 2:
        named += re.findall(r"`([^`]+)`", cells[0])
        tests |= set(re.findall(r"`([^`]+)`", cells[1]))
said = [f"tests/README.md lacks {s}: add it to the row of the tests that cover it" for s in sorted(sources - set(named))]
said += [f"tests/README.md names {s}, which is not a source file" for s in sorted(set(named) - sources)]
said += [f"tests/README.md names {s} twice" for s in sorted(set(named)) if named.count(s) > 1]
said += [f"tests/README.md names tests/{t}, which does not exist" for t in sorted(tests) if not (top / "tests" / t).exists()]
programs = {f"{p.parent.name}/{p.name}" for f in ("unit", "kernels", "fuzz") for p in (top / "tests" / f).glob("*.c")
            if re.search(r"^(Test|ParameterizedTest)\(|LLVMFuzzerTestOneInput\(const", p.read_text(), re.M) and p.name != "replay.c"}
said += [f"tests/README.md does not say what tests/{t} covers" for t in sorted(programs - tests)]
sys.exit("\n".join(said) or 0)
PY
