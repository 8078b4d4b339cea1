# docs/architecture.md draws the folders of tests/rooms, each above what it may include.
python3 - "$TOP" <<'PY'
import re, sys
from pathlib import Path

top = Path(sys.argv[1])
rows = (top / "tests/rooms").read_text().splitlines()
allowed = {folder: may.split() for folder, may in (row.split(":") for row in rows)}
drawn, room = [], ""
for line in (top / "docs/architecture.md").read_text().split("## The folders")[1].split("```")[1].splitlines():
    outer, inner = re.match(r" ([a-z]+)/", line), re.match(r".{17} ([a-z]+)/ ", line)
    room = outer[1] if outer else room
    if outer or inner:
        drawn.append(f"{room}/{inner[1]}" if inner else room)
for folder in sorted(set(allowed) ^ set(drawn)):
    print(f"folder {folder} is only {'in the drawing' if folder in drawn else 'in tests/rooms'}")
for folder in drawn:
    for other in allowed.get(folder, []):
        if other in drawn and drawn.index(other) < drawn.index(folder):
            print(f"{folder} is drawn below {other}, which it includes")
PY
