"""colours.py BUILD - runs every tool, for help, for misuse and at work, with NO_COLOR, with what other programs take as a
wish for colours, and without: what they print is the same, and has no escape sequence. On a terminal (EVP_TTY=1) the one
that erases a line is allowed."""
import os, re, subprocess, sys
from pathlib import Path

build, data = Path(sys.argv[1]), os.environ["DATA"]
WISHES = {}, {"NO_COLOR": "1"}, {"NO_COLOR": "", "CLICOLOR_FORCE": "1", "FORCE_COLOR": "3", "COLORTERM": "truecolor"}, \
    {"TERM": "xterm-256color"}, {"TERM": "dumb"}
wrong = 0

def complain(text):
    global wrong
    print(text)
    wrong += 1

def run(args, wish, tty):
    env = {k: v for k, v in os.environ.items() if k not in {k for w in WISHES for k in w}} | wish | {"EVP_TTY": tty}
    p = subprocess.run([build / args[0], *args[1:]], stdin=subprocess.DEVNULL, capture_output=True, env=env, timeout=60)
    return p.returncode, p.stdout, p.stderr

def times(text):
    """Without what differs from run to run: times, and how often progress was written."""
    text = re.sub(rb"\r[^\r\n]*(?=\r)", b"", text)
    return re.sub(rb"[0-9.]+( ?(s|ms|us|min|h)\b|/s)", b"TIME", text)

Path("context.txt").write_text((Path(os.environ["TOP"]) / "README.md").read_text()[:3000])
jobs = [["evp-import", "context.txt", "-o", "c.jsonl"],
        ["evp-qgen", "c.jsonl", "--per-context", "2", "-o", "q.jsonl"],
        ["evp-profile", "c.jsonl", "q.jsonl", "--model", f"{data}/tiny.gguf", "--dry-run", "--configs", "knorm:drop=0.5",
         "-o", "p.h5"],
        ["evp-plan", f"{data}/table.h5", "--tiers", f"{data}/tiers.json", "-o", "m.jsonl"],
        ["evp-show", f"{data}/table.h5", f"{data}/tiers.json"],
        ["evp-tiers", "--tier", "name=a,uri=redis://a,read=1G,write=1G,latency=1ms"],
        ["evp-load", "--dry-run", "m.jsonl"],
        ["evp-report", f"{data}/table.h5", "-o", "r.html"],
        ["evp-plan", "nosuch.h5", "--tiers", "nosuch.json"]]
tools = [p.name for p in sorted(build.glob("evp-*")) if p.suffix != ".so" and p.read_bytes()[:4] == b"\x7fELF"]
if len(tools) < 9:
    complain(f"only {len(tools)} tools")
jobs += [[tool, arg] for tool in tools for arg in ("--help", "--version", "--no-such-option")]
for job in jobs:
    for tty in "0", "1":
        plain = None
        for wish in WISHES:
            status, out, err = run(job, wish, tty)
            if b"\033" in out or b"\033" in (err.replace(b"\033[K", b"") if tty == "1" else err):
                complain(f"{job} {wish} EVP_TTY={tty}: an escape sequence in {out!r} {err!r}")
            said = status, out if job[0] != "evp-report" else b"", times(err) if tty == "0" else b""
            plain = plain or said
            if said != plain:
                complain(f"{job} {wish} EVP_TTY={tty}: {said!r} where it was {plain!r}")
sys.exit(wrong > 0)
