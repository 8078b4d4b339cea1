"""greedy.py - questions about two licences, and how greedy answers of ours are compared with transformers'."""
import copy
import torch
from check import report

LICENCES = "/usr/share/common-licenses/"
CONTEXT, NEW = 1000, 24
NEAR = 1e-3  # logits this close may change places
QUESTIONS = {
    "GPL-3": ["What is the name of this license?", "Who published the license?", "In which year was version 3 published?",
              "What does the word 'copyleft' have to do with this text?", "What may everyone do with copies of this document?",
              "Which freedoms does the license want to guarantee?", "What does 'The Program' refer to?",
              "Why does the GPL say there is no warranty?", "How do developers protect your rights, in two steps?",
              "What does the preamble say about patents?"],
    "Apache-2.0": ["What does 'Licensor' mean?", "What is a Derivative Work?", "Which version of the license is this?",
                   "What does 'control' mean in the definition of a legal entity?", "What is meant by 'Source' form?",
                   "What is a Contribution?", "When was this license published?", "What happens to the patent license if you sue?",
                   "What must you give to any other recipients of the work?", "Where can the license be found on the web?"],
}


def rounded(cache):
    """A context's cache with the numbers that a payload holds."""
    for layer in cache.layers:
        layer.keys, layer.values = (x.bfloat16().to(x.dtype) for x in (layer.keys, layer.values))
    return cache


def greedy(model, cache, ids, stops):
    """The answer over a copy of a context's cache, and for each token how far the second choice was behind."""
    cache, out, gaps = copy.deepcopy(cache), [], []
    ids = torch.tensor([ids])
    with torch.no_grad():
        while len(out) < NEW:
            last = model(ids, past_key_values=cache).logits[0, -1]
            top = last.topk(2)
            if int(top.indices[0]) in stops:
                break
            out.append(int(top.indices[0]))
            gaps.append((top.values.tolist(), top.indices.tolist()))
            ids = torch.tensor([[out[-1]]])
    return out, gaps


def compare_answers(name, ours, theirs, gaps):
    for q, (a, b) in enumerate(zip(ours, theirs)):
        same = next((t for t in range(max(len(a), len(b))) if a[t:t + 1] != b[t:t + 1]), None)
        if same is None:
            continue
        values, ids = gaps[q][same] if same < len(gaps[q]) else ([0, -1], [])
        tie = values[0] - values[1] < NEAR and a[same:same + 1] == ids[1:2]
        yield report(tie, f"{name}, question {q}: token {same}: transformers' logits for {ids} are {values}")
    yield report(True, f"{name}: {len(ours)} answers of up to {NEW} tokens")
