"""requests-popular.py LENGTH KIND - a log about 16 documents, each of another length. Each has 20 requests: three
questions are asked 6, 5 and 3 times, the others once. LENGTH: bytes of a question. KIND: bodies, or vllm for its lines."""
import json, sys

length, kind = int(sys.argv[1]), sys.argv[2]

def words(name, n):
    text = name
    for i in range(n):
        text += f" {name.split()[-1]}{i}"
    return text[:n]

for shift in range(16):
    document = words(f"Handbook {shift} of pumps", 3000 + 16 * shift) + "\n\n"
    for i, q in enumerate("AAAAAABBBBBCCCDEFGHI"):
        asked = document + words(f"{q} which", length - 1) + "?"
        if kind == "bodies":
            system = {"role": "system", "content": "You are a helpful assistant."}
            print(json.dumps({"model": "m", "messages": [system, {"role": "user", "content": asked}]}))
        else:
            prompt = ("<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n" + asked
                      + "<|im_end|>\n<|im_start|>assistant\n")
            print(f"DEBUG 11-22 05:58:{i:02} [logger.py:49] Request chatcmpl-{i} details: prompt: {prompt!r}, "
                  "prompt_token_ids: [1], prompt_embeds shape: None.")
