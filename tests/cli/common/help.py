"""help.py BUILD - what every tool owes its users, checked against its own option table (--print-options)."""
import re, shlex, subprocess, sys
from pathlib import Path

failed = 0

def check(tool, holds, what):
    global failed
    if not holds:
        print(f"{tool}: {what}")
        failed += 1

def run(tool, *args):
    p = subprocess.run([tool, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    return p.returncode, p.stdout, p.stderr

def paragraphs(text):
    """Long option -> (its argument, its words), from lines like '  -n, --limit=N    take at most ...'."""
    found, last = {}, None
    for line in text.splitlines():
        m = re.match(r"(?:  -\S, |      )--([a-z][a-z0-9-]*)(?:=(\S+))?(?:\s+(.*))?$", line)
        if m:
            last = m[1]
            found[last] = [m[2] or "", m[3] or ""]
        elif last and line.startswith(" " * 20):
            found[last][1] += " " + line.strip()
        else:
            last = None
    return found

def check_pasted(tool, examples):
    """An example is what a shell takes: its commands are tools of ours with options that they have."""
    p = subprocess.run(["sh", "-n"], input=examples, capture_output=True, text=True, timeout=30)
    check(tool, p.returncode == 0, f"a shell does not take the examples: {p.stderr}")
    for line in examples.replace("\\\n", " ").splitlines():
        words = shlex.split(line)
        command = next((p for p in tools if p.name == words[0]), None)
        check(tool, command, f"the example '{line.strip()}' does not begin with a tool")
        names = {row.split("\t")[1] for row in run(command, "--print-options")[1].splitlines()} if command else set()
        for word in words[1:]:
            if word.startswith("--"):
                check(tool, word[2:].split("=")[0] in names, f"{words[0]} of the examples has no option {word}")

def check_layout(tool, text):
    """Every option in a group under a heading, the last of them Common; then short paragraphs."""
    groups, _, about = text.partition("\nExamples:\n")[0].partition("\n Common\n")
    blocks = groups.split("\n\n")[1:]
    check(tool, all(re.match(r" [A-Z]", block) for block in blocks), "--help has options without a heading")
    common, *about = about.strip("\n").split("\n\n")
    check(tool, all(f"--{name}" in common for name in ("summary", "help", "usage", "version")), "the last group is not Common")
    check(tool, about and all(len(words.splitlines()) <= 4 and not words.startswith(" ") for words in about),
          "a paragraph of --help has more than four lines")

def check_tool(path):
    tool = path.name
    status, options, _ = run(path, "--print-options")
    table = [line.split("\t") for line in options.splitlines()]
    check(tool, status == 0 and table and all(len(row) == 6 for row in table), "--print-options prints no table")
    status, text, stderr = run(path, "--help")
    check(tool, status == 0 and not stderr, f"--help gives {status} and stderr {stderr!r}")
    check(tool, text.startswith(f"Usage: {tool} "), "--help does not begin with its usage")
    summary = text.splitlines()[1]
    check(tool, re.fullmatch(rf"{tool} - .*[a-z]", summary) and not text.splitlines()[2].strip(),
          f"the summary is no single line, as 'evp help' and the man page want it: {summary!r}")
    check(tool, "Exit status:\n  0  success" in text, "--help does not list the exit statuses")
    examples = text.partition("\nExamples:\n")[2].partition("\n\n")[0]
    check(tool, examples and all(re.match("  ", line) for line in examples.splitlines()),
          f"an example is too long for its line, so that it cannot be pasted:\n{examples}")
    check_pasted(tool, examples)
    check(tool, run(path, "-h") == (0, text, ""), "-h is not --help")
    check_layout(tool, text)
    shown = paragraphs(text.partition("\nExamples:\n")[0])
    extra = set(shown) - {row[1] for row in table} - {"help", "usage", "version"}
    check(tool, not extra, f"--help shows {extra}, which the table does not have")
    for _, name, kind, argument, default, _ in table:
        check(tool, name in shown, f"--help does not mention --{name}")
        if name not in shown:
            continue
        words = " ".join(shown[name][1].split())
        check(tool, words, f"--help does not say what --{name} is for")
        if kind not in ("flag", "count"):
            want = argument if len(argument) <= 100 else "NAME"  # of a long list the names are in the text
            check(tool, shown[name][0] == want, f"--{name} is shown with '{shown[name][0]}', not '{want}'")
            check(tool, want == argument or argument.replace("|", ", ") in words, f"--help does not have all names of --{name}")
        if default:
            check(tool, f"[{default}]" in words, f"--help does not say that --{name} is '{default}' by default")
        if kind in ("int", "size", "float", "time", "enum"):
            status, out, err = run(path, f"--{name}=nonsense!")
            check(tool, status == 2 and not out, f"--{name}=nonsense! gives {status}, not 2, or writes to stdout")
            check(tool, err.startswith(f"{tool}: '--{name}=nonsense!' is not "), f"--{name}=nonsense! says {err!r}")
    status, out, err = run(path, "--version")
    check(tool, status == 0 and re.fullmatch(rf"{tool} \(EvicPress\) \S+\n", out), f"--version says {out!r}")
    status, out, err = run(path, "--no-such-option")
    check(tool, status == 2 and not out, f"an unknown option gives {status} and stdout {out!r}")
    check(tool, err.startswith(f"{tool}: ") and "--no-such-option" in err, f"an unknown option says {err!r}")
    status, out, err = run(path, "--usage")
    check(tool, status == 0 and all(f"--{row[1]}" in out for row in table), "--usage lacks options")
    with open("/dev/full", "w") as full:
        p = subprocess.run([path, "--print-options"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=30)
    check(tool, p.returncode == 1 and "cannot write standard output" in p.stderr,
          f"a full disk under stdout gives {p.returncode} and {p.stderr!r}")

DIFFER = {
    "access-before": "a file, and whether a replay's plans have one",
    "budget": "a night's seconds of the device, and those of the answers that it checks",
    "contexts": "the file, and how a replay's requests choose among its contexts",
    "model": "weights, a shape, or a service's name for it",
    "verify": "payloads in place, and a manifest: both ask whether what was made still holds",
}

def check_same(tools):
    """An option has the same words in every tool, but for those of DIFFER."""
    words = {}
    for path in tools:
        for row in run(path, "--print-options")[1].splitlines():
            _, name, *_, text = row.split("\t")
            words.setdefault(name, {}).setdefault(text, []).append(path.name)
    for name, texts in words.items():
        check(f"--{name}", (len(texts) > 1) == (name in DIFFER), "differs between tools: " + "; ".join(
            f"{', '.join(who)}: {text}" for text, who in texts.items()))

tools = [p for p in sorted(Path(sys.argv[1]).glob("evp-*")) if p.suffix != ".so" and p.read_bytes()[:4] == b"\x7fELF"]
check("evp-*", len(tools) > 0, "no tools")
for path in tools:
    check_tool(path)
check_same(tools)
sys.exit(failed > 0)
