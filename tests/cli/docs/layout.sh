# CONTRIBUTING.md and docs/architecture.md say of every folder what tests/layers lets it include.
python3 - "$TOP" <<'PY'
import re, sys
from pathlib import Path

top = Path(sys.argv[1])
rows = re.search(r"allowed='\n(.*?)\n'", (top / "tests/layers").read_text(), re.S)[1].splitlines()
allowed = {folder: set(may.split()) for folder, may in (row.split(":") for row in rows)}

def includes(text, folder):
    """The folders that a table names; "all" and "everything" may be followed by "but FOLDER"."""
    words = text.split()
    if words and words[0] in ("all", "everything"):
        return set(allowed) - {folder} - (set(words[words.index("but") + 1:]) if "but" in words else set())
    return set(words)

contributing, folder = {}, None
table = (top / "CONTRIBUTING.md").read_text().split("\n\n    base ")[1].split("\n\n")[0]
for line in ("    base " + table).splitlines():
    folder = line[4:23].strip() or folder
    contributing[folder] = contributing.get(folder, "") + " " + line[23:54]
picture = {}
for line in (top / "docs/architecture.md").read_text().split("## The folders")[1].split("```")[1].splitlines():
    names = re.match(r" ((?:[a-z/]+/ +)+)(.*)", line)
    for name in names[1].split() if names else ():
        picture[name.rstrip("/")] = names[2].rsplit(": ", 1)[1] if ": " in names[2] else ""
for page, said in ("CONTRIBUTING.md", contributing), ("docs/architecture.md", picture):
    for folder in sorted(set(allowed) | set(said)):
        if folder not in said or folder not in allowed:
            print(f"{page}: folder {folder} is only {'here' if folder in said else 'in tests/layers'}")
        elif includes(said[folder], folder) != allowed[folder]:
            print(f"{page}: {folder} includes {sorted(includes(said[folder], folder))}, in tests/layers {sorted(allowed[folder])}")
PY
