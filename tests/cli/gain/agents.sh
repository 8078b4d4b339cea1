# What comes again of agents' requests, told from their bodies and from the prompts that a template makes of them: within
# .011. Both logs have the same requests: tools, calls, results, reasoning, a picture in one of nine sessions.
command -v python3 >/dev/null || skip "python3 is not installed"
cat >make.py <<'END2'
import json, random
random.seed(1)
words = [f"{a}{b}" for a in "ba de fi go lu ma ne".split() for b in "ra st mi no pel".split()]
def text(n):
    return " ".join(random.choices(words, k=n))
sets = [[{"type": "function", "function": {"name": text(1), "description": text(60), "parameters": {"type": "object", "properties": {}}}} for _ in range(9)] for _ in range(3)]
system = [text(700), text(400)]
def call(c):
    f = c["function"]
    return f'\n<tool_call>\n{{"name": "{f["name"]}", "arguments": {f["arguments"]}}}\n</tool_call>'
def render(m, tools): # as Qwen2.5's
    s = f'<|im_start|>system\n{m[0]["content"]}\n\n# Tools\n<tools>' + "".join("\n" + json.dumps(t) for t in tools) + "\n</tools><|im_end|>\n"
    for x in m[1:]:
        if x["role"] == "tool":
            s += f'<|im_start|>user\n<tool_response>\n{x["content"]}\n</tool_response><|im_end|>\n'
        else:
            s += f'<|im_start|>{x["role"]}\n{x["content"] or ""}{"".join(call(c) for c in x.get("tool_calls", []))}<|im_end|>\n'
    return s + "<|im_start|>assistant\n"
bodies, prompts = open("bodies", "w"), open("prompts", "w")
for session in range(9):
    tools = sets[session % 3]
    m = [{"role": "system", "content": system[session % 2]}, {"role": "user", "content": text(80)}]
    for step in range(8):
        bodies.write(json.dumps({"model": "m", "tools": tools, "messages": m, "tool_choice": "auto"}) + "\n")
        prompts.write(json.dumps({"model": "m", "prompt": render(m, tools)}) + "\n")
        m = m + [{"role": "assistant", "content": None, "tool_calls": [{"id": f"call_{session}_{step}", "type": "function", "function": {"name": text(1), "arguments": json.dumps({"path": text(9)})}}]},
                 {"role": "tool", "tool_call_id": f"call_{session}_{step}", "content": text(random.randrange(50, 500))}]
        if step == 4:
            m = m + [{"role": "assistant", "content": text(60)}, {"role": "user", "content": text(40)}]
END2
python3 make.py
share() { evp-gain -q "$@" --model synthetic:llama-3.1-8b --gpu H100 --dram 64G | awk '/share that/ { print $NF }'; }
bodies=$(share bodies) prompts=$(share prompts)
echo "$bodies $prompts" | awk '{ d = $1 - $2; print ($1 > 0.8 && d < 0.011 && d > -0.011) ? "alike" : $0 }'
# A salt or an adapter keeps requests apart; a picture counts 1,024 tokens, and is the same when its content is.
sed '1~2s/"model"/"cache_salt": "a", "model"/' bodies >salted
sed '1~2s/"model"/"lora_path": "a", "model"/' bodies >adapters
for log in salted adapters; do
	echo "$(share $log) $bodies" | awk '{ print $1 < $2 ? "less" : $0 }'
done
for a in x y; do
	for b in x y; do
		for url in $a $b; do
			echo "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"$url\"}},{\"type\":\"text\",\"text\":\"What is it?\"}]}]}"
		done >images
		evp-gain images --model synthetic:llama-3.1-8b --gpu H100 --dram 1G 2>/dev/null | grep 'prompt tokens\|share that' | tr -s '\n ' ' '
		echo
	done
done
