"""transformers_cache.py MANIFEST MODEL <TOKENS - answers over placed contexts with Hugging Face's transformers.

Reads token ids, one prompt per line, fills a DynamicCache from the longest placed prefix and prints the greedy answer.
Any config works: where layers or heads keep different numbers of rows (pyramidkv, adakv, chunkkv, kvzip, kvzap, impress), heads are padded
to the longest of their layer, and each layer has a mask of its own. Layers with a window hold their last tokens.
"""
import json
import sys

import evp
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache


def side(payload, layer, what, kept):
    """Keys ("k") or values ("v") of a layer, (1, heads, rows of the longest head, head_dim); the rest is 0."""
    tensor = torch.zeros(1, len(kept), max(kept), payload.shape.head_dim)
    for head, rows in enumerate(kept):
        to = tensor[0, head, :rows].numpy()
        if rows:
            payload.rows(layer, what, to, heads=(head, head + 1), type="f32")
    return tensor


def fill(payload, dtype):
    """A cache with a payload's rows, and for each layer which of them each head has: (heads, rows)."""
    cache, held = DynamicCache(), []
    for layer in range(payload.shape.n_layers):
        kept = payload.kept(layer)
        cache.update(*(side(payload, layer, what, kept).to(dtype) for what in "kv"), layer)
        held.append(torch.arange(max(kept)) < torch.tensor(kept)[:, None])
    return cache, held


def masks(model, held, windows):
    """Gives every attention the mask of its layer: the rows its head has, then tokens up to its own, of all these the last
    where windows[layer] is not 0. Returns the hooks."""
    def hook_of(layer):
        has = held[layer].repeat_interleave(model.config.num_attention_heads // len(held[layer]), 0)

        def hook(module, args, kwargs):
            new, own = kwargs["hidden_states"].shape[1], kwargs["past_key_values"].get_seq_length(layer) - has.shape[1]
            causal = torch.ones(new, own + new, dtype=torch.bool).tril(own)
            rows = has[:, None].expand(-1, new, -1)
            mask = torch.cat([rows, causal.expand(len(has), -1, -1)], -1)
            if windows[layer]:  # its rows are neighbours
                mask &= torch.ones(new, mask.shape[-1], dtype=torch.bool).triu(mask.shape[-1] - new - windows[layer] + 1)
            kwargs["attention_mask"] = mask[None]
            return args, kwargs
        return hook
    return [layer.self_attn.register_forward_pre_hook(hook_of(i), with_kwargs=True)
            for i, layer in enumerate(model.model.layers)]


@torch.no_grad()
def answer(model, payload, tokens, limit=32):
    """The greedy answer to a prompt of which the payload's tokens are the beginning."""
    cache, held = fill(payload, model.dtype)
    says = json.loads(payload.text("cache"))
    windows = [says["window"] if i in says.get("windowed", ()) else 0 for i in range(len(held))]
    hooks, at, out = masks(model, held, windows), payload.shape.n_tokens, []
    stops, new = model.generation_config.eos_token_id, tokens[payload.shape.n_tokens:]
    while len(out) < limit:
        positions = torch.arange(at, at + len(new))[None]  # that of the next token, whatever was dropped
        logits = model(torch.tensor([new]), past_key_values=cache, position_ids=positions).logits[0, -1]
        at, new = at + len(new), [int(logits.argmax())]
        if new[0] in (stops if isinstance(stops, list) else [stops]):
            break
        out += new
    for hook in hooks:
        hook.remove()
    return out


def main():
    model, tokenizer = (kind.from_pretrained(sys.argv[2]) for kind in (AutoModelForCausalLM, AutoTokenizer))
    with evp.open(sys.argv[1]) as store:
        for line in sys.stdin:
            tokens = [int(word) for word in line.split()]
            found = store.find(tokens[:-1])  # the model needs a token to answer
            if not found:
                print("not placed")
                continue
            with store.payload(found) as payload:
                print(f"{found.config}: {tokenizer.decode(answer(model, payload, tokens))!r}")


if __name__ == "__main__":
    main()
