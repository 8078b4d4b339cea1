# Every relative link in the Markdown files leads to a file or folder.
python3 - "$TOP" <<'PY'
import re, sys
from pathlib import Path

top = Path(sys.argv[1])
found = []
pages = list(top.glob("*.md")) + [p for f in ("docs", "tests", "planner", "loader", "engine", "profiler", "examples")
                                  for p in (top / f).rglob("*.md")]
for page in pages:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in link and not (page.parent / link).exists():
            found.append(f"{page.relative_to(top)}: the link to {link} leads nowhere")
sys.exit("\n".join(found) or 0)
PY
