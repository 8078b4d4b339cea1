"""reference.py MODEL FOLDER - what transformers answers from each placed payload: a DynamicCache with the payload's rows,
as evp decodes them, float32 weights, greedy. Writes FOLDER/answers.json: {config: {question: {"ids", "margins"}}}; a
margin is the difference of the two largest logits. Of most configs one question of each context, to save time.

compare(got, answer) is for the parts of this oracle."""
import json, os, sys

NEW, MARGIN, BATCH = 64, 1e-3, 12
ALL = ("none",)  # configs with all questions


def compare(got, answer):
    """Number of tokens that agree, and whether the first one that does not is excused: its margin is small."""
    n = next((i for i, (a, b) in enumerate(zip(got, answer["ids"])) if a != b), min(len(got), len(answer["ids"])))
    return n, n == len(answer["ids"]) or n < len(got) and answer["margins"][n] < MARGIN


def prompts(folder):
    with open(os.path.join(folder, "prompts.json")) as f:
        given = json.load(f)
    return {q["id"]: given["contexts"][q["context"]] + q["ids"] for q in given["questions"]}, given


def chosen(config, questions):
    """The ids of the questions that are answered under a config."""
    shift = sum(map(ord, config))
    return [q["id"] for i, q in enumerate(questions) if config in ALL or i % 4 == (i // 4 + shift) % 4]


def rows(payload, layer, what):
    """[1, heads, rows, dim] of a payload."""
    import torch

    shape = payload.shape
    to = torch.empty((1, shape.n_heads, shape.n_rows, shape.head_dim))
    payload.rows(layer, what, (to.data_ptr(), to.numel() * 4), heads=(0, shape.n_heads), rows=(0, shape.n_rows), type="f32",
                 strides=(shape.n_rows * shape.head_dim, shape.head_dim, 1))
    return to


def ask(model, payload, question):
    """Runs a question after the payload's rows: the cache, the last token's logits, the next position."""
    import torch
    from transformers import DynamicCache

    cache, at, m = DynamicCache(), payload.shape.n_tokens, len(question)
    for layer in range(payload.shape.n_layers):
        cache.update(rows(payload, layer, "k"), rows(payload, layer, "v"), layer)
    past = cache.get_seq_length()
    logits = model(torch.tensor([question]), past_key_values=cache, position_ids=torch.arange(at, at + m)[None],
                   attention_mask=torch.ones(1, past + m, dtype=torch.long), logits_to_keep=1).logits[0, -1]
    return cache, logits, at + m


def answers_of(model, asked):
    """Greedy answers of several questions together; shorter caches begin with masked rows."""
    import torch
    from torch.nn.functional import pad
    from transformers import StaticCache

    lengths = [cache.get_seq_length() for cache, *_ in asked]
    longest = max(lengths)
    together = StaticCache(config=model.config, max_cache_len=longest + NEW)  # a DynamicCache is copied with every token
    for layer in range(len(asked[0][0].layers)):
        k, v = (torch.cat([pad(getattr(cache.layers[layer], side), (0, 0, longest - n, 0))
                           for (cache, *_), n in zip(asked, lengths)]) for side in ("keys", "values"))
        together.update(k, v, layer)
    mask = torch.tensor([[0] * (longest - n) + [1] * n for n in lengths])
    logits, at = torch.stack([one for _, one, _ in asked]), torch.tensor([[at] for *_, at in asked])
    out = [{"ids": [], "margins": []} for _ in asked]
    while True:
        top = logits.topk(2)
        for i, one in enumerate(out):
            one["ids"].append(int(top.indices[i, 0]))
            one["margins"].append(float(top.values[i, 0] - top.values[i, 1]))
        if len(out[0]["ids"]) == NEW:
            return out
        mask = pad(mask, (0, 1), value=1)
        logits = model(top.indices[:, :1], past_key_values=together, position_ids=at, attention_mask=mask,
                       logits_to_keep=1).logits[:, -1]
        at += 1


def main():
    import torch
    from transformers import AutoModelForCausalLM

    import evp
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    model_path, folder = sys.argv[1:]
    model, answers = AutoModelForCausalLM.from_pretrained(model_path, dtype=torch.float32), {}
    prompt, given = prompts(folder)
    tails = {q["id"]: q["ids"] for q in given["questions"]}
    with torch.no_grad():
        for name in sorted(os.listdir(os.path.join(folder, "tiers"))):
            with evp.open(os.path.join(folder, f"{name}.jsonl")) as store:
                config = store.find(next(iter(prompt.values()))).config
                answers[config], names = {}, chosen(config, given["questions"])
                for some in (names[i:i + BATCH] for i in range(0, len(names), BATCH)):
                    asked = []
                    for q in some:
                        with store.payload(store.find(prompt[q])) as payload:
                            asked.append(ask(model, payload, tails[q]))
                    answers[config].update(zip(some, answers_of(model, asked)))
    with open(os.path.join(folder, "answers.json"), "w") as f:
        json.dump(answers, f)
    print("reference:", ", ".join(f"{config} {len(of)}" for config, of in answers.items()), "answers")


if __name__ == "__main__":
    main()
