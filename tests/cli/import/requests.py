"""requests.py - a request log: 12 requests about three documents after one system prompt, four with the system prompt
alone, one conversation of five rounds, three to another model, and some that cannot be used."""
import json

def words(name, n):
    return " ".join(f"{name}{i}" for i in range(n))

def put(body, hour, **more):
    print(json.dumps({"timestamp": 1.7e9 + 3600 * hour, "body": {"model": "large", **body}, **more}))

system = {"role": "system", "content": "You are brief.\n" + words("word", 300)}
for i in range(12):
    text = f"Document:\n{words('abc'[i % 3], 200 + i % 3)}\n\nQuestion: {'Who What Where'.split()[i % 3]} is secret {i}?\nAnswer:"
    put({"messages": [system, {"role": "user", "content": text}]}, i)
for i in range(4):
    put({"messages": [system, {"role": "user", "content": f"{'ABCD'[i]} quick one"}]}, 12)
talk = [{"role": "user", "content": "Let us talk. " + words("talk", 200)}]
for i in range(5):
    put({"messages": talk}, 13 + i)
    talk += [{"role": "assistant", "content": f"Answer {i}."}, {"role": "user", "content": f"Round {i}? " + words(f"r{i}x", 100)}]
for i in range(3):
    put({"model": "small", "prompt": "Read this.\n" + words("p", 300) + f"\nSo {'xyz'[i]}"}, 20)
user = {"role": "user", "content": "u"}
put({"messages": [user], "tools": [{"type": "function"}]}, 20)
put({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, 20)
put({"messages": [user, {"role": "assistant", "content": "a"}]}, 20)
put({"messages": [user, {"role": "tool", "content": "a"}, user]}, 20)
put({"messages": [user, {"role": "assistant", "content": "<think>\nmm</think>a"}, user]}, 20)
put({"prompt": [1, 2, 3]}, 20)
print("GET /health 200")
