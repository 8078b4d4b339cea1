# The tables of dialects in docs are those of the code: traces in docs/replay.md, fields of rows in docs/requests.md.
python3 - "$TOP" <<'PY'
import re, sys
from pathlib import Path

top = Path(sys.argv[1])
code = (top / "logs/request_trace.h").read_text()
rows = [eval("(" + re.sub(r"\\\n", "", row) + ",)") for row in re.findall(r"^    X\((.*?)\) *\\?$", code, re.M)]
page = (top / "docs/replay.md").read_text()
table = [tuple(cell.strip().strip("`") for cell in line.strip("|").split("|")) for line in page.splitlines()
         if re.match(r"\| [^|]+ \| `\w+` \|", line)]
want = [(*row[:6], str(row[6]) if row[6] else "as rows fit, or 512", "s" if row[7] else "found out") for row in rows]
print(len(want), "dialects")
for row in sorted(set(want) ^ set(table)):
    print("only in", "the code:" if row in want else "docs/replay.md:", row)
requests = (top / "docs/requests.md").read_text()
words = set(re.findall(r'"(\w[\w@.]*|@\w+)"', re.search(r"#define REQUEST_WRAPPERS(.*?)/\* Why", (top / "logs/request.h").read_text(), re.S)[1]))
words |= set(re.findall(r'"(@?\w+)"', re.search(r"names\[\] = \{ \"timestamp\"(.*?)\}", (top / "logs/request.c").read_text(), re.S)[0]))
for word in sorted(words):
    if f"`{word}`" not in requests:
        print("docs/requests.md does not name", word)
PY
