# A chat template that writes today's date (Llama 3.2): each tool that makes prompts says so, once. With a fixed date the ids
# are those of a server with that date_string, nothing is said, and requests with another date_string are left out.
command -v python3 >/dev/null || skip "python3 is not installed"
cp -r "$DATA/tiny" model && chmod -R u+w model
python3 - <<'END'
import json, os, sys
sys.path.insert(0, os.environ["TOP"] + "/tests/golden/chat")
from templates import TEMPLATES
open("model/chat_template.jinja", "w").write(TEMPLATES["Llama 3.2"][1])
long, short = "The depot reports gaskets before noon. " * 40, "The fox jumps."
def put(name, dates):
    with open(name, "w") as f:
        for i, date in enumerate(dates):
            body = {"model": "m", "messages": [{"role": "system", "content": "Brief."}, {"role": "user", "content": long + f"Which, {i}?"}]}
            f.write(json.dumps(body | ({"chat_template_kwargs": {"date_string": date}} if date else {})) + "\n")
put("log", [None] * 30 + ["5 Mar 2026", "5 Mar 2026", "6 Mar 2026"])
with open("text.jsonl", "w") as f:
    f.write(json.dumps({"id": "c1", "text": short, "ask": " {question}"}) + "\n")
with open("q.jsonl", "w") as f:
    f.write('{"id":"q1","context":"c1","split":"train","text":"What?"}\n')
# What a server writes, as a prompt without a chat template
for name, date in ("march", "5 Mar 2026"), ("july", "26 Jul 2024"):
    head = f"<|im_start|><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\nToday Date: {date}\n\n"
    for kind, system in ("plain", ""), ("system", "Brief."):
        text = head + system + "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n" + short
        with open(f"{name}-{kind}.jsonl", "w") as f:
            f.write(json.dumps({"id": "c1", "text": text, "ask": "{question}", "turns": [{"role": "prompt", "chars": len(text)}]}) + "\n")
with open("system.jsonl", "w") as f:
    f.write(json.dumps({"id": "c1", "text": "Brief." + short, "ask": "{question}",
                        "turns": [{"role": "system", "chars": 6}, {"role": "user", "chars": len(short)}]}) + "\n")
END
march='5 Mar 2026'
ids() { evp-show --ids c1 --model model "$@" 2>/dev/null; }
for kind in plain system; do
	rows=$kind.jsonl
	[ $kind = system ] || rows=text.jsonl
	ids march-$kind.jsonl >want
	ids $rows --date "$march" | cmp - want && echo "$kind: as the server's"
	ids $rows | cmp -s - want || echo "$kind: not without the date"
	ids july-$kind.jsonl >want
	ids $rows | cmp - want && echo "$kind: the template's own"
done
said() { # TOOL ARGUMENT...: lines about the date, without and with it, and the status
	for date in '' "$march"; do
		"$@" ${date:+--date "$date"} >out 2>err
		echo "$1 status $?, $(grep -c "warning: the chat template of 'model' writes today's date" err) said"
		grep -v "today's date" err
	done
}
said evp-import text.jsonl --model model -o c.jsonl -q
said evp-import --requests log --model model -o mine --min-tokens 9 -q
said evp-show text.jsonl --ids c1 --model model
evp-show model 2>&1 | grep -c "today's date"
evp-show "$DATA/tiny" 2>&1 | grep -c "today's date"
said evp-profile c.jsonl q.jsonl --model model --configs knorm:drop=0.5 --max-new-tokens 2 -q --overwrite -o p.h5
profile() { evp-profile c.jsonl q.jsonl --model model --configs knorm:drop=0.9 --max-new-tokens 2 -q -o p.h5 "$@" 2>&1; }
profile --chat-template 'date:6 Mar 2026'
evp-import text.jsonl --model model --date "$march" -q -o c.jsonl
python3 - <<'END'
import hashlib, json, os, struct, subprocess
show = lambda *a: subprocess.run(["evp-show", *a], capture_output=True, text=True).stdout
ids = [int(v) for v in show("--ids", "c1", "--model", "model", "--date", "5 Mar 2026", "c.jsonl").split()]
digest = hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest()
row = {"id": "c1", "token_digest": digest, "n_tokens": len(ids), "config": "none", "tier": "dram", "bytes": 1, "quality": 1,
       "quality_test": None, "ttft_s": None, "utility": 0, "frequency": 1, "operation": "insert", "payload": "c1.safetensors"}
head, _, _, _, end = open(os.environ["DATA"] + "/pack/manifest.jsonl")
head = json.loads(head) | {"model_digest": json.loads(show("--json", "model"))["model_digest"]}
open("m.jsonl", "w").write(json.dumps(head) + "\n" + json.dumps(row) + "\n" + '{"end":true,"rows":1}\n')
END
said evp-pack -q m.jsonl c.jsonl --model model -o payloads
evp-show --ids c1 --model model text.jsonl --chat-template "$(printf 'date:\377')" 2>&1
evp-show --ids c1 --model "$DATA/tiny" text.jsonl --date "$march" 2>&1 | sed "s|$DATA/||"
printf 'text {content}' >own
evp-import text.jsonl --model model --chat-template own -o c.jsonl -q
