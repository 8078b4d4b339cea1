# Prompts that are alike but for something near their beginning: a time, also behind an agent's tools, an id of any length, a name,
# a question in front of its document. evp-gain says what, and what would come again without it; of prompts that begin alike, or
# have little in common, it says nothing. Models that are not asked for do not count.
cat >make.py <<'END'
import json, random, sys
kind, n = sys.argv[1], int(sys.argv[2])
rng = random.Random(5)
word = lambda: "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(2, 9)))
def text(size):
    out = ""
    while len(out) < size:
        out += word() + " "
    return out
manual, books = text(6000), [text(5000) for _ in range(3)]
for i in range(n):
    if kind in ("time", "tools"):
        system = f"You help.\nIt is 2026-11-{10 + i % 18} {i % 24:02}:{i % 60:02}:{(i * 7) % 60:02}.\n" + manual
    elif kind == "id":
        system = "\x1b[31mSession " + "".join(rng.choice("0123456789abcdef-") for _ in range(rng.randint(8, 36))) + "\u202e\n" + manual
    elif kind == "two":
        system = f"Hello {word()},\nit is {i % 24:02} o'clock.\n" + manual
    elif kind == "first":
        system = f"What does it say about {word()} {word()}?\n" + books[i % 3]
    elif kind == "alike":
        system = manual + f" Now: {i}. "
    else:
        system = text(6000)
    more = {"tools": [{"type": "function", "function": {"name": "look"}}]} if kind == "tools" else {}
    print(json.dumps(more | {"model": "a", "timestamp": 1.7e9 + i,
                      "messages": [{"role": "system", "content": system}, {"role": "user", "content": text(40)}]}))
END
for kind in time tools id two first alike none; do
	echo "-- $kind"
	python3 make.py $kind 40 >$kind.jsonl
	evp-gain $kind.jsonl --model synthetic:llama-3.1-8b --gpu H100 --dram 64G 2>err | grep 'share \|alike'
	grep -o '[0-9]* prompts are alike.*' err
done
echo "-- of another model"
{ sed 's/"a"/"b"/' time.jsonl && cat alike.jsonl; } >both.jsonl
evp-gain both.jsonl --dataset a --model synthetic:llama-3.1-8b --gpu H100 --dram 64G 2>&1 | grep "prompts are alike" || echo none
