"""summary.py PAGE FILE STATUS COMMAND... - a summary against the page that describes it; prints what does not depend on
the time or the machine."""
import json, re, sys

page, path, status, *command = sys.argv[1:]
tool = command[0]
text = open(page).read()
row = re.search(rf"^\| `{tool}` \| (.*) \|$", text, re.M)[1]
known = set(re.findall(r"`([a-z_0-9]+)`", row)) | {"insert", "keep", "move", "recompress", "replace", "evict"}
lines = open(path).read().splitlines()
s = json.loads(lines[0])
assert len(lines) == 1 and list(s) == [m for m in ("evp", "version", "tool", "args", "status", "seconds", "error",
                                                   "result") if m in s], list(s)
assert (s["evp"], s["version"], s["tool"]) == ("summary", 1, tool), s
assert sorted(s["args"]) == sorted(command[1:] + ["--summary", path]), s  # options are moved before operands
assert s["status"] == int(status) and s["seconds"] >= 0, s
def members(v):
    if isinstance(v, dict):
        return set(v).union(*map(members, v.values()))
    return set().union(*map(members, v)) if isinstance(v, list) else set()
if members(s["result"]) - known:
    print(f"{tool}: {members(s['result']) - known} are not on the page")
def short(v):
    if isinstance(v, dict):
        return {k: short(w) for k, w in v.items() if not k.endswith(("_per_s", "ttft_s"))}
    return [short(w) for w in v] if isinstance(v, list) else round(v, 3) if isinstance(v, float) else v
exact = {k: short(v) for k, v in s["result"].items() if tool in ("evp-import", "evp-qgen", "evp-show", "evp-tiers")}
print(tool, s["status"], s.get("error", "-"), json.dumps(exact) if exact else sorted(s["result"]))
