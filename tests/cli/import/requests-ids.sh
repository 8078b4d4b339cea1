# Ids that a person can tell apart: words of what a text is about, not of templates, instructions or system prompts. They are
# the same whatever else the logs hold, and --hash-ids leaves out the words only.
command -v python3 >/dev/null || skip "python3 is not installed"
cat >make.py <<'END'
"""make.py KIND [TEXT...] - a log of three requests about each of these texts, or about all."""
import json, sys
system = "You are the assistant of the Example Company. Be brief. " * 8
texts = {
    "pump": "This manual is about the pump. We call the pump Kaze, and its valve is a Brandt. When the Kaze runs, the Brandt opens. "
            "However, a Kaze can stop. However, no Brandt can.\n" * 9,
    "german": "In diesem Vertrag mietet die Mieterin von der Vermieterin eine Wohnung. Die Mieterin zahlt, und die Vermieterin "
              "heizt die Wohnung. Dabei gilt: ohne Übergabe der Wohnung keine Miete, und eine Übergabe ist nur mit Vermieterin möglich.\n" * 6,
    "russian": "Руководство по эксплуатации насоса. Перед пуском проверьте клапан.\n" * 20,
    "chinese": "第一章　总则。本手册说明水泵的安装和使用。\n" * 30,
    "code": "def area(width, height):\n    return width * height\n\n" * 30,
    "emoji": "🎉🎉 … — ✓\n" * 120,
    "passages": "".join(f"Passage {i}: it says that the Rhine meets the Örtze, and that the Örtze is brown.\n" for i in range(20)),
}
kind, wanted = sys.argv[1], sys.argv[2:] or texts
for name in wanted:
    for q in "ABC":
        user = f"Answer from the text.\n\n{texts[name]}\n\nQuestion: {q} is what?"
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        if kind == "bodies":
            print(json.dumps({"model": "m", "messages": messages}))
        elif kind == "qwen":
            print(json.dumps({"prompt": "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages) + "<|im_start|>assistant\n"}))
        elif kind == "llama":
            print(json.dumps({"prompt": "<|begin_of_text|>" + "".join(f"<|start_header_id|>{m['role']}<|end_header_id|>\n\n{m['content']}<|eot_id|>" for m in messages)
                              + "<|start_header_id|>assistant<|end_header_id|>\n\n"}))
        else:
            print(json.dumps({"prompt": f"<s>[INST] <<SYS>>\n{system}\n<</SYS>>\n\n{user} [/INST]"}))
for q in "ABCDEF":
    print(json.dumps({"model": "m", "messages": [{"role": "system", "content": system * 3}, {"role": "user", "content": f"{q}?"}]}))
END
ids() { python3 -c 'import json; print(*(json.loads(l).get("id") for l in list(open("out/contexts.jsonl"))[1:-1]), sep="\n")'; }
for kind in bodies qwen llama mistral; do
	python3 make.py $kind >log
	evp-import -q --requests log -o out 2>said
	echo "$kind"
	ids | tee all
	for text in pump german passages; do
		python3 make.py $kind $text >log
		evp-import -q --requests log -o out 2>said
		ids | grep -vxFf all && echo "of $text it is another id"
	done
done
evp-import -q --requests log --hash-ids -o out 2>said
ids
