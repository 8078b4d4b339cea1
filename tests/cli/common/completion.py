"""completion.py STAGE - completions as `make install` puts them, in the shells themselves: bash and zsh on a
pseudo-terminal, fish through its `complete -C`. A shell that is not installed is named on stderr."""
import os, pty, select, shutil, subprocess, sys, time
from pathlib import Path

stage = Path(sys.argv[1])
wrong = 0

def complain(text):
    global wrong
    print(text)
    wrong += 1

# what is typed before the tab, and what it must bring
CASES = [
    ("evp pl", "evp plan "),
    ("evp help im", "evp help import"),
    ("evp plan --sol", "evp plan --solver"),
    ("evp-plan --ti", "evp-plan --tiers"),
    ("evp-plan --solver opti", "evp-plan --solver optimal"),
    ("evp-plan --tiers tie", "evp-plan --tiers tiers.json"),
    ("evp-plan -t tie", "evp-plan -t tiers.json"),
    ("evp-pack -o pay", "evp-pack -o payloads/"),
    ("evp-plan tab", "evp-plan table.h5"),
]

def typed(argv, setup, line, want):
    """Starts a shell, types the line and a tab, and returns what the terminal shows once `want` is there."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(TERM="dumb", PS1="", PROMPT="", HOME=os.getcwd(), HISTFILE="")
        os.execvp(argv[0], argv)
    shown = b""
    try:
        os.write(fd, setup.encode() + b"\n")
        deadline, sent = time.monotonic() + 20, False
        while time.monotonic() < deadline:
            if not sent and b"READY!" in shown:
                shown, sent = b"", True
                os.write(fd, line.encode() + b"\t")
            if select.select([fd], [], [], 0.2)[0]:
                shown += os.read(fd, 4096)
            if sent and want.encode() in shown.replace(b"\r", b"").replace(b"\x07", b""):
                break
    finally:
        os.write(fd, b"\x03\nexit\n")
        os.close(fd)
        os.waitpid(pid, 0)
    return shown.decode(errors="replace")

def check(shell, argv, setup):
    if not shutil.which(shell):
        print(f"{shell} is not installed: its completion is not tested", file=sys.stderr)
        return
    for line, want in CASES:
        for _ in range(3):  # a tab that comes before the shell reads keys is lost, beside other work
            shown = typed(argv, setup, line, want)
            if want in shown.replace("\r", "").replace("\x07", ""):
                break
        else:
            complain(f"{shell}: '{line}' and a tab show {shown!r}, not '{want}'")

os.mkdir("payloads")
for name in "table.h5", "tiers.json":
    Path(name).touch()
bash, zsh, fish = (stage / "share" / p for p in ("bash-completion/completions", "zsh/site-functions",
                                                 "fish/vendor_completions.d"))
for name in "evp", "evp-plan", "evp-load":
    if (bash / name).read_text() != (bash / "evp").read_text() or not (fish / f"{name}.fish").is_file():
        complain(f"{name} has no completion of its own name")
check("bash", ["bash", "--norc", "--noprofile", "-i"],
      f"bind 'set bell-style none'; source {bash}/evp-plan; printf 'READY%s\\n' '!'")
check("zsh", ["zsh", "-f", "-i"],
      f"unsetopt zle_bracketed_paste; fpath=({zsh} $fpath); autoload -Uz compinit && compinit -u -D; "
      "printf 'READY%s\\n' '!'")
if shutil.which("fish"):
    for line, want in CASES:
        p = subprocess.run(["fish", "--no-config", "-c", f"source {fish}/evp.fish; complete -C '{line}'"], text=True,
                           capture_output=True, timeout=60, env=dict(os.environ, HOME=os.getcwd()))
        words = [row.split("\t")[0] for row in p.stdout.splitlines()]
        if want.split()[-1] not in words:
            complain(f"fish: '{line}' gives {words}, {p.stderr!r}")
else:
    print("fish is not installed: its completion is not tested", file=sys.stderr)
sys.exit(wrong > 0)
