"""options.py BUILD - an option means the same in every tool: a letter belongs to one long name, a long name has one
letter and one sentence, and no letter is in use that base/opt.h does not list. Some long names mean another thing in one tool."""
import subprocess, sys
from pathlib import Path

LETTERS = {"a": "access", "c": "configs", "d": "dataset", "j": "threads", "m": "model", "n": "dry-run", "o": "output",
           "p": "payloads", "q": "quiet", "s": "seed", "t": "tiers", "v": "verbose"}
# A service's model; a model of which only the shape counts; GPUs, of which 0 is as many as needed;
# a flag where evp-plan takes a manifest; a file that is written where evp-import takes a flag;
# how many at once, where evp-tiers takes a list to measure; the GPU and the answers whose reads of a cache count;
# seconds of a night, and of its drift; a file, where evp-replay takes a choice or nothing; the model that an engine serves.
OTHER = {("evp-qgen", "model"), ("evp-gain", "model"), ("evp-replay", "model"), ("evp-replay", "requests"),
         ("evp-gain", "gpus"), ("evp-load", "verify"), ("evp-load", "jobs"), ("evp-replay", "rate"),
         ("evp-plan", "gpu"), ("evp-plan", "output-tokens"),
         ("evp-drift", "budget"), ("evp-nightly", "budget"), ("evp-drift", "contexts"),
         ("evp-replay", "access-before"), ("evp-tiers", "model")}
said = {}  # long name -> (letter, sentence, the first tool that has it)
wrong = 0

def complain(text):
    global wrong
    print(text)
    wrong += 1

for path in sorted(Path(sys.argv[1]).glob("evp-*")):
    if path.suffix == ".so" or path.read_bytes()[:4] != b"\x7fELF":
        continue
    table = subprocess.run([path, "--print-options"], capture_output=True, text=True, check=True).stdout
    for row in table.splitlines():
        letter, name, _, _, _, sentence = row.split("\t")
        if letter != "-" and LETTERS.get(letter) != name:
            complain(f"{path.name}: -{letter} is --{name}; everywhere else it is --{LETTERS.get(letter, 'no option')}")
        if name in LETTERS.values() and letter == "-":
            complain(f"{path.name}: --{name} has no letter here")
        if (path.name, name) in OTHER:
            continue
        other = said.setdefault(name, (letter, sentence, path.name))
        if other[1] != sentence:
            complain(f"--{name}: {other[2]} says '{other[1]}', {path.name} says '{sentence}'")
unused = set(LETTERS.values()) - set(said)
if unused:
    complain(f"no tool has {', '.join(sorted(unused))}")
sys.exit(wrong > 0)
