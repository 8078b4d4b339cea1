# --min-uses counts conversations: prompts that begin with all of another's messages are one, whatever their order in the
# log, also where the server logged them after it applied a template. Uses stay uses.
command -v python3 >/dev/null || skip "python3 is not installed"
cat >make.py <<'END2'
import json, sys
text = " ".join(f"step{i}" for i in range(400)) + "\n\n"
def talk(who, rounds):
    m = [{"role": "system", "content": text}]
    for k in range(rounds):
        m.append({"role": "user", "content": f"{who} asks {k}. " + " ".join(f"{who}{k}x{i}" for i in range(99))})
        yield list(m)
        m.append({"role": "assistant", "content": f"{who} hears {k}."})
def render(m):
    return "".join(f"<|im_start|>{x['role']}\n{x['content']}<|im_end|>\n" for x in m) + "<|im_start|>assistant\n<think>\n"
def put(name, talks, order=1, form=lambda m: {"messages": m}):
    rows = [form(m) for who, n in talks for m in talk(who, n)]
    with open(name, "w") as f:
        f.writelines(json.dumps({"timestamp": 1.7e9 + 60 * i, "body": r}) + "\n" for i, r in list(enumerate(rows))[::order])
for order, n in ((1, ""), (-1, "-back")):
    put("one" + n, [("ann", 6)], order)
    put("two" + n, [("ann", 6), ("bob", 4)], order)
    put("two-rendered" + n, [("ann", 6), ("bob", 4)], order, lambda m: {"prompt": render(m)})
    put("twice" + n, [("ann", 6), ("ann", 1)], order)
END2
python3 make.py
for log in one two two-rendered twice; do
	for back in "" -back; do
		for uses in 1 2 3; do
			rm -rf out
			evp-import --requests $log$back --min-uses $uses -o out 2>err
			echo "$log$back, $uses: status $?"
			grep 'requests go\|conversation' err
			[ ! -d out ] || grep -o '"count":[0-9]*' out/access.jsonl | tr '\n' ' '
		done
	done
done
