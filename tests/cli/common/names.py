"""names.py BUILD - for every option of every tool: its name less one letter is refused with a hint, and a second value
for an option that takes one is refused, unless it is a list. The same in words that are no options, which are not."""
import subprocess, sys
from pathlib import Path

wrong = 0

def complain(text):
    global wrong
    print(text)
    wrong += 1

def run(tool, *args):
    p = subprocess.run([tool, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    return p.returncode, p.stdout, p.stderr

GOOD = {"int": "2", "size": "1G", "float": "0.5", "time": "0.5", "text": "x", "output": "x", "shard": "1/2"}

def check(tool):
    table = [line.split("\t") for line in run(tool, "--print-options")[1].splitlines()]
    names = {row[1] for row in table} | {"help", "usage", "version", "print-options"}
    for _, name, kind, argument, _, _ in table:
        value = GOOD.get(kind, argument.split("|")[0])
        if name in ("window", "ruler"):
            value = "512"
        short = name[:-1]
        if short not in names and len(short) > 1:  # one letter says nothing
            status, out, err = run(tool, f"--{short}" if kind in ("flag", "count") else f"--{short}={value}")
            if status != 2 or out or not err.startswith(f"{tool.name}: '--{short}' is not an option; did you mean '--"):
                complain(f"{tool.name} --{short}: {status}, {err!r}")
        if kind in ("flag", "count", "list"):
            continue
        status, out, err = run(tool, f"--{name}", value, f"--{name}={value}")
        if status != 2 or out or not err.startswith(f"{tool.name}: '--{name}' is given twice"):
            complain(f"{tool.name} --{name} twice: {status}, {err!r}")

tools = [p for p in sorted(Path(sys.argv[1]).glob("evp-*")) if p.suffix != ".so" and p.read_bytes()[:4] == b"\x7fELF"]
if not tools:
    complain("no tools")
for tool in tools:
    check(tool)
qgen = Path(sys.argv[1]) / "evp-qgen"
for args, says in [
    (["--retrys", "3"], "'--retrys' is not an option; did you mean '--retries'?"),
    (["--zzzzzzzz"], "'--zzzzzzzz' is not an option\n"),
    (["--seed", "--retrys"], "'--seed=--retrys' is not a number from 0 up"),  # the value of --seed
    (["-qs", "--retrys"], "'--seed=--retrys' is not a number"),               # and of -s after -q
    (["-s", "1", "--seed=2"], "'--seed' is given twice"),
    (["-h", "--retrys"], "'--retrys' is not an option"),
]:
    status, out, err = run(qgen, *args)
    if status != 2 or out or f"evp-qgen: {says}" not in err:
        complain(f"evp-qgen {args}: {status}, {err!r}")
for args in ["--", "--retrys"], ["-qqvv", "--", "x"]:  # operands, and options that are counted
    status, out, err = run(qgen, *args)
    if status != 1 or "cannot open" not in err:
        complain(f"evp-qgen {args}: {status}, {err!r}")
sys.exit(wrong > 0)
