#!/usr/bin/env python3
"""peer.py [small] - what the job of scripts/gpu-first costs with kvpress on transformers on this GPU: 40 variants, each
with a prefill of its own, and 50 questions to each, one after the other, in bf16 with random weights.

Needs torch, transformers and kvpress; tests/bench/results/2026-11-27-h200.md was measured with 2.11, 5.17 and 0.5.5
(`pip install --no-deps kvpress`, which asks for an older transformers, with requests, accelerate, cachetools and fire). The
second of two prefills and the fastest of three questions count, and their times are added up: the whole would take an hour.
small: a tiny model, on any device. A line of JSON for each length of the context.
"""
import json, sys, time, types

datasets = types.ModuleType("datasets")  # kvpress imports it for its own evaluation, which is not used
datasets.load_dataset = None
sys.modules["datasets"] = datasets
import kvpress, torch, transformers
from kvpress.presses.base_press import BasePress

SMALL = "small" in sys.argv
VARIANTS, QUESTIONS, QUESTION_TOKENS, NEW_TOKENS = 40, 50, 32, 64
LLAMA = dict(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
             num_key_value_heads=8, head_dim=128, vocab_size=128256, max_position_embeddings=131072, rope_theta=500000.0)
TINY = LLAMA | dict(hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
                    num_key_value_heads=2, head_dim=32, vocab_size=512)
device = "cuda" if torch.cuda.is_available() else "cpu"
forward_hook = BasePress.forward_hook


def with_positions(self, module, inputs, kwargs, output):
    """kvpress 0.5.5 reads an argument that transformers 5.17 no longer passes."""
    hidden = kwargs["hidden_states"]
    return forward_hook(self, module, inputs, dict(cache_position=torch.arange(hidden.shape[1], device=hidden.device)) | kwargs,
                        output)


def clock():
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def random_ids(model, n):
    return torch.randint(model.config.vocab_size, (1, n), device=device)


def prefill(model, n, press):
    """(cache, seconds)"""
    cache, begin = transformers.DynamicCache(), clock()
    with press(model):
        model.model(input_ids=random_ids(model, n), past_key_values=cache)
    return cache, clock() - begin


def question(model, cache, n):
    """Seconds of a question and its answer after n tokens, of which the cache keeps some."""
    ids, kept, begin = random_ids(model, QUESTION_TOKENS), cache.get_seq_length(), clock()
    for _ in range(NEW_TOKENS):
        positions = torch.arange(n, n + ids.shape[1], device=device)[None]
        n += ids.shape[1]
        ids = model(input_ids=ids, past_key_values=cache, position_ids=positions).logits[:, -1].argmax(-1, keepdim=True)
    seconds = clock() - begin
    cache.crop(kept)
    return seconds


def measure(model, n, press):
    prefill(model, n, press)
    cache, seconds = prefill(model, n, press)
    asked = min(question(model, cache, n) for _ in range(3))
    return dict(prefill_s=seconds, question_s=asked, kept=cache.get_seq_length(), variant_s=seconds + QUESTIONS * asked)


@torch.no_grad()
def main():
    BasePress.forward_hook = with_positions
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        config = transformers.LlamaConfig(**(TINY if SMALL else LLAMA), attn_implementation="sdpa")
        model = transformers.LlamaForCausalLM(config).eval()
    prefill(model, 512, kvpress.KnormPress(compression_ratio=0.5))
    for n in (300,) if SMALL else (4096, 32768):
        found = {name: measure(model, n, press) for name, press in (
            ("none", kvpress.KnormPress(compression_ratio=0.0)), ("snapkv", kvpress.SnapKVPress(compression_ratio=0.5)))}
        job = found["none"]["variant_s"] + (VARIANTS - 1) * found["snapkv"]["variant_s"]
        print(json.dumps(dict(tokens=n, device=torch.cuda.get_device_name() if device == "cuda" else "cpu", job_s=job, **found)))


main()
