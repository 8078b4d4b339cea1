"""reference.py MODEL FOLDER - what transformers answers from each placed payload: a DynamicCache with the payload's rows,
as evp decodes them, float32 weights, greedy. Writes FOLDER/answers.json: {config: {question: {"ids", "margins"}}}; a
margin is the difference of the two largest logits.

compare(got, answer) is for the parts of this oracle."""
import json, os, sys

NEW, MARGIN = 64, 1e-3


def compare(got, answer):
    """Number of tokens that agree, and whether the first one that does not is excused: its margin is small."""
    n = next((i for i, (a, b) in enumerate(zip(got, answer["ids"])) if a != b), min(len(got), len(answer["ids"])))
    return n, n == len(answer["ids"]) or n < len(got) and answer["margins"][n] < MARGIN


def prompts(folder):
    with open(os.path.join(folder, "prompts.json")) as f:
        given = json.load(f)
    return {q["id"]: given["contexts"][q["context"]] + q["ids"] for q in given["questions"]}, given


def chosen(config, questions):
    """The ids of the questions that are answered under a config: of `none` one of each context, of others half as many."""
    shift = sum(map(ord, config))
    return [q["id"] for i, q in enumerate(questions)
            if i % 4 == (i // 4 + shift) % 4 and (config == "none" or (i // 4 + shift) % 2)]


def rows(payload, layer, what):
    """[1, heads, rows, dim] of a payload."""
    import torch

    shape = payload.shape
    to = torch.empty((1, shape.n_heads, shape.n_rows, shape.head_dim))
    payload.rows(layer, what, (to.data_ptr(), to.numel() * 4), heads=(0, shape.n_heads), rows=(0, shape.n_rows), type="f32",
                 strides=(shape.n_rows * shape.head_dim, shape.head_dim, 1))
    return to


def answer(model, payload, question):
    import torch
    from transformers import DynamicCache

    cache, at, step, out = DynamicCache(), payload.shape.n_tokens, question, {"ids": [], "margins": []}
    for layer in range(payload.shape.n_layers):
        cache.update(rows(payload, layer, "k"), rows(payload, layer, "v"), layer)
    while len(out["ids"]) < NEW:
        past, m = cache.get_seq_length(), len(step)
        logits = model(torch.tensor([step]), past_key_values=cache, position_ids=torch.arange(at, at + m)[None],
                       attention_mask=torch.ones(1, past + m, dtype=torch.long), logits_to_keep=1).logits[0, -1]
        top = logits.topk(2)
        out["ids"].append(int(top.indices[0]))
        out["margins"].append(float(top.values[0] - top.values[1]))
        at, step = at + m, out["ids"][-1:]
    return out


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
                answers[config] = {}
                for q in chosen(config, given["questions"]):
                    with store.payload(store.find(prompt[q])) as payload:
                        answers[config][q] = answer(model, payload, tails[q])
            with open(os.path.join(folder, "answers.json"), "w") as f:
                json.dump(answers, f)
    print("reference:", ", ".join(f"{config} {len(of)}" for config, of in answers.items()), "answers")


if __name__ == "__main__":
    main()
