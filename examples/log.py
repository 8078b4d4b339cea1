"""log.py LICENSE >log.jsonl - made log.jsonl: thirty requests of a desk that answers questions about parts of a licence."""
import json, random, sys

QUESTIONS = ["Summarise this in one sentence.", "Which duties does it name?", "Who carries the risk?", "May I sell the result?",
             "What must I keep when I change a file?", "When does the licence end?"]

random.seed(7)
text = open(sys.argv[1], encoding="utf-8").read()
at = [text.index(f"   {section}. ") for section in range(1, 10)] + [len(text)]
parts = [text[at[begin]:at[end]] for begin, end in ((0, 1), (1, 3), (3, 5), (5, 9))]
clock = 1764300000
for _ in range(30):
    clock += random.expovariate(1 / 20)
    part = parts[min(int(random.paretovariate(1)) - 1, 3)]  # the first is asked about most
    messages = [{"role": "system", "content": "You answer questions about this text.\n\n" + part},
                {"role": "user", "content": random.choice(QUESTIONS)}]
    print(json.dumps({"timestamp": round(clock, 1), "model": "served", "messages": messages}))
