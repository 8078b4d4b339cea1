# What a file says reaches a terminal without its escape sequences, C1 controls and changes of direction: in the names of files, in
# messages, in a payload's tensors, in a file's lineage.
mkdir -p models
odd=$(printf 'a\033[2J\302\233b\342\200\256c')
echo '{"evp":"contexts","version":1}' >"$odd.jsonl"
/usr/bin/python3 - <<'END'
import json, struct
name = "k\x1b]0;x\x07\u202e"
header = json.dumps({name: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, ensure_ascii=False).replace("\\u001b", "\x1b").encode()
header += b" " * (-len(header) % 8)
open("t.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + bytes(4))
print(json.dumps({"evp": "contexts", "version": 1, "tool": "x\u009b\u2067", "args": ["\x1b[31m"], "from": []}, ensure_ascii=False), file=open("c.jsonl", "w"))
print(json.dumps({"id": "a", "text": "b"}), file=open("c.jsonl", "a"))
print(json.dumps({"end": True, "rows": 1}), file=open("c.jsonl", "a"))
END
{ evp-show --check "$odd.jsonl"; evp-show "$odd.jsonl"; evp-show t.safetensors; evp-show --lineage c.jsonl; evp-show c.jsonl; } >said 2>&1
/usr/bin/python3 -c '
import re
text = open("said", encoding="utf-8", errors="surrogateescape").read()
print(text, end="")
print(re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\u061c]", text))'
