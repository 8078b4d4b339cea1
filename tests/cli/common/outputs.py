"""outputs.py BUILD - every option of every tool that is written (type "output" of --print-options) against every operand
and option that may be read: same name, hard link, symbolic link; all are refused with status 2 before anything is
opened, and the file keeps its bytes. Runs in a scratch folder."""
import os, subprocess, sys
from pathlib import Path

wrong = 0

def complain(text):
    global wrong
    print(text)
    wrong += 1

BYTES = b'{"id":"a","text":"The only text."}\n'

def setup():
    for name in "file", "hard", "soft", "free":
        Path(name).unlink(missing_ok=True)
    Path("file").write_bytes(BYTES)
    os.link("file", "hard")
    os.symlink("file", "soft")

def run(tool, *args, stdin=subprocess.DEVNULL):
    p = subprocess.run([tool, *args], stdin=stdin, capture_output=True, text=True, timeout=30)
    return p.returncode, p.stdout, p.stderr

def refused(tool, what, status, out, err):
    if status != 2 or out or "is the file that" not in err or err.count("\n") != 1:
        complain(f"{tool.name} {what}: {status}, {out!r}, {err!r}")
    if Path("file").read_bytes() != BYTES or not Path("soft").is_symlink() or not os.path.samefile("file", "hard"):
        complain(f"{tool.name} {what}: the file was changed")
        setup()

def check(path):
    table = [line.split("\t") for line in run(path, "--print-options")[1].splitlines()]
    usage = run(path, "--help")[1].splitlines()[0].split("...]", 1)[-1].split()
    operands = max(sum(not word.startswith("[") for word in usage), 1 if usage else 0)
    reads = [row[1] for row in table if row[2] in ("text", "list", "output")]
    count = 0
    for output in [row[1] for row in table if row[2] == "output"]:
        for name in "file", "hard", "soft":
            if operands:
                args = ["file"] * operands
                refused(path, f"{args} --{output}={name}", *run(path, *args, f"--{output}={name}"))
                count += 1
            for other in reads:
                if other != output:
                    args = ["free"] * operands + [f"--{other}=file", f"--{output}={name}"]
                    refused(path, args, *run(path, *args))
                    count += 1
        if operands:
            with open("file") as stdin:
                args = ["free"] * operands + [f"--{output}=hard"]
                refused(path, f"{args} <file", *run(path, *args, stdin=stdin))
        argument = next(row[3] for row in table if row[1] == output)
        if argument == "FILE":
            for folder in "folder", "folder/", "new/":
                status, out, err = run(path, *["file"] * operands, f"--{output}={folder}")
                if status != 1 or out or f"'--{output}={folder}' is a folder; give the name of a file" not in err:
                    complain(f"{path.name} --{output}={folder}: {status}, {err!r}")
    return count

os.mkdir("folder")
setup()
tools = [p for p in sorted(Path(sys.argv[1]).glob("evp-*")) if p.suffix != ".so" and p.read_bytes()[:4] == b"\x7fELF"]
count = sum(check(path) for path in tools)
if count < 100:
    complain(f"only {count} combinations were tried")
if sorted(os.listdir(".")) != ["file", "folder", "hard", "soft"] or os.listdir("folder"):
    complain(f"something was written: {os.listdir('.')}")
sys.exit(wrong > 0)
