"""What kvpress (fp32) keeps of a text, and what it answers: the default model as a Hugging Face folder.

Presses run inside attention, but only the cache they leave differs: so one prefill serves them all, each press being
called as its own hook would call it. h2o needs the attention itself, which only the eager implementation returns: it
gets a prefill of its own. AdaKVPress leaves the cache whole and says which keys are to be masked. KVzipPress does too,
after passes of its own over the cache, whose scores serve all its configs.
"""
import math
import packing
import torch
from kvpress import (AdaKVPress, BlockPress, ChunkKVPress, CriticalKVPress, CURPress, ExpectedAttentionPress, KeyDiffPress,
                     KnormPress, KVzipPress, LagKVPress, MergingPress, ObservedAttentionPress, PyramidKVPress, SnapKVPress,
                     StreamingLLMPress, TOVAPress)
from kvpress.pipeline import KVPressTextGenerationPipeline
from kvpress.presses.base_press import BasePress
from kvpress.utils import get_prerope_query_states
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache
from transformers.models.llama.modeling_llama import rotate_half
from transformers.utils import logging

logging.disable_progress_bar()
logging.set_verbosity_error()
PRESSES = {"knorm": KnormPress, "keydiff": KeyDiffPress, "snapkv": SnapKVPress, "streamingllm": StreamingLLMPress,
           "pyramidkv": PyramidKVPress, "tova": TOVAPress, "h2o": ObservedAttentionPress,
           "lagkv": LagKVPress, "cur": CURPress, "expected_attention": ExpectedAttentionPress}
NAMES = {"drop": "compression_ratio", "window": "window_size", "kernel": "kernel_size", "beta": "beta", "lag": "lag_size",
         "n_sink": "n_sink", "leverage": "leverage_type", "n_future": "n_future_positions", "epsilon": "epsilon",
         "use_vnorm": "use_vnorm"}
CUR_NAMES = {"block": "local_window_size", "n_sink": "num_sinks"}
WORDS = {"no": False, "yes": True}
WINDOW = 64  # queries to remember
TIE = 1e-5  # relative to the boundary score: another order of the same additions may swap two this close
MARK = "\u2603" * 3  # stands for the text in the chat template


class H2OPress(ObservedAttentionPress):
    """The heavy hitters and the recent half of H2O's own H2OKVCache_LayerWise; a kv head takes the mean of its group."""

    def score(self, module, hidden_states, keys, values, attentions, kwargs):
        n, heads = keys.shape[2], keys.shape[1]
        sums = attentions.sum(2).view(1, heads, -1, n).mean(2)
        sums[..., n - max(1, int(n * (1 - self.compression_ratio))) // 2:] = torch.inf
        return sums


class ImpressPress(ObservedAttentionPress):
    """What impress reads, by transformers' attention: chunks of tokens in order, or in that of their importance."""

    def __init__(self, load, probe="3", chunk="64", reorder="no"):
        super().__init__()
        self.load, self.probe, self.chunk, self.reorder = float(load), int(probe), int(chunk), WORDS[reorder]

    def compress(self, module, hidden_states, keys, values, attentions, kwargs):
        n, heads = keys.shape[2], keys.shape[1]
        importance = attentions.sum(2).view(heads, -1, n).sum(1)[:self.probe].sum(0)
        order = importance.sort(descending=True, stable=True).indices
        rows = order if self.reorder else torch.arange(n)
        important = torch.isin(rows, order[:math.ceil(n * self.load)])
        read = [c for c, i in zip(rows.split(self.chunk), important.split(self.chunk)) if i.any()]
        at = torch.cat(read).sort().values
        return keys[:, :, at], values[:, :, at]


def press_of(config):
    """A chain of our names as a press."""
    if config.endswith("+merge_cos"):
        return MergingPress(press_of(config.removesuffix("+merge_cos")))
    stages = [stage.split(":") for stage in config.split("+")]
    name, *params = stages[-1]
    given = dict(p.split("=") for p in params)
    if name == "impress":
        return ImpressPress(**given)
    names = {**NAMES, **(CUR_NAMES if name == "cur" else {})}
    block = int(given.pop("block", 0)) if name == "keydiff" else 0
    press = H2OPress if given.pop("recent", None) else PRESSES[name]
    press = press(**{names[k]: float(v) if k in ("drop", "epsilon") else int(v) if v.isdigit() else WORDS.get(v, v)
                     for k, v in given.items()})
    front, *params = stages[0]
    given = dict(p.split("=") for p in params)
    if front == "criticalkv":
        return CriticalKVPress(press, **{k: float(v) for k, v in given.items()})
    if front == "adakv":
        return AdaKVPress(press, alpha_safeguard=float(given.get("safeguard", 0.2)))
    if front == "chunkkv":
        return ChunkKVPress(press, chunk_length=int(given.get("length", 20)))
    return BlockPress(press, block_size=block) if block else press


class Every(BasePress):
    """Asks every press for its scores, its compressed keys and values, and its masked keys; leaves the cache whole."""

    def __init__(self, presses):
        self.presses = presses
        self.scores = {name: [] for name in presses}  # [layer] of (heads, T)
        self.rows = {name: [] for name in presses}  # [layer] of (keys, values)
        self.masked = {name: [] for name in presses}  # [layer] of what AdaKVPress masks, or None
        self.chosen = {name: [] for name in presses}  # [layer] of positions (heads, n), of presses that do not just score
        self.queries = []  # [layer] of (G, W, H/G, K): of the last tokens, rotated

    def compress(self, module, hidden_states, keys, values, attentions, kwargs):
        q = get_prerope_query_states(module, hidden_states[:, -WINDOW:])
        cos, sin = (x[:, -WINDOW:].unsqueeze(1) for x in kwargs["position_embeddings"])
        q = (q * cos + rotate_half(q) * sin)[0]
        self.queries.append(q.reshape(keys.shape[1], -1, *q.shape[1:]).transpose(1, 2))
        for name, press in self.presses.items():
            given = (module, hidden_states, keys, values, attentions, kwargs)
            if isinstance(press, (BlockPress, ChunkKVPress, ImpressPress)):
                places = torch.arange(keys.shape[2]).view(1, 1, -1, 1).expand_as(values)
                chosen = press.compress(module, hidden_states, keys, places, attentions, kwargs)[1]
                self.chosen[name].append(chosen[0, ..., 0])
            else:
                scorer = press.press if isinstance(press, (AdaKVPress, MergingPress)) else press
                self.scores[name].append(scorer.score(*given)[0])
            module.masked_key_indices = None
            self.rows[name].append(press.compress(*given))
            self.masked[name].append(module.masked_key_indices)
        module.masked_key_indices = None
        return keys, values


class Zip(KVzipPress):
    """Keeps its scores, so that one reconstruction serves every ratio, and both ways to share."""

    def compress_post(self, model):
        self.found, self.head = self.score_val.clone(), self.prefix_length

    def masked(self, model, drop, layerwise):
        self.compression_ratio, self.layerwise, self.score_val = drop, layerwise, self.found.clone()
        super().compress_post(model)
        masked = [layer.self_attn.masked_key_indices for layer in model.model.layers]
        for layer in model.model.layers:
            layer.self_attn.masked_key_indices = None
        return self.score_val[:, 0], masked


def zip_values(config):
    values = dict(p.split("=") for p in config.split(":")[1:])
    assert values["prefix"] == "kvpress"
    return float(values["drop"]), values.get("over") == "layer"


class Oracle:
    def __init__(self, folder, text, configs):
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa").eval()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.pipe = KVPressTextGenerationPipeline(model=self.model, tokenizer=self.tokenizer)
        chat = self.tokenizer.apply_chat_template([{"role": "user", "content": MARK}], add_generation_prompt=True,
                                                  tokenize=False)
        self.head, self.tail = chat.split(MARK)
        self.ids = packing.context_ids(self.encode, self.head + text)
        self.text = text
        zips = [c for c in configs if c.startswith("kvzip")]
        presses = {c: press_of(c) for c in configs if c not in zips}
        observed = {c: p for c, p in presses.items() if isinstance(p, ObservedAttentionPress)}
        self.every = Every({c: p for c, p in presses.items() if c not in observed})
        cache = self.prefill(self.every)
        self.full = [(layer.keys[0], layer.values[0]) for layer in cache.layers]  # [layer] of K and V, (heads, T, K)
        if observed:
            self.model.set_attn_implementation("eager")
            eager = Every(observed)
            self.prefill(eager)
            self.model.set_attn_implementation("sdpa")
            for part in ("scores", "rows", "masked", "chosen"):
                getattr(self.every, part).update(getattr(eager, part))
        if zips:
            press = Zip(compression_ratio=0.5)
            self.prefill(press)
            self.zip_head = press.head
            for config in zips:
                self.every.scores[config], self.every.masked[config] = press.masked(self.model, *zip_values(config))
                self.every.rows[config] = [(k[None], v[None]) for k, v in self.full]

    @torch.no_grad()
    def prefill(self, press):
        cache = DynamicCache()
        with press(self.model):
            self.model.model(input_ids=torch.tensor([self.ids]), past_key_values=cache)
        return cache

    def encode(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False)

    def question(self, ask):
        """The ids that follow the context's in the whole prompt."""
        return self.encode(self.head + self.text + ask + self.tail)[len(self.ids):]

    def kept(self, config):
        """Per layer and head: positions kept for sure, and those that tie with the boundary. AdaKVPress compares all
        heads of a layer after it gave the best of each head the largest number there is."""
        if config.startswith("kvzip"):
            return self.kept_together(config)
        if self.every.chosen[config]:
            sure = [layer.sort().values.tolist() for layer in self.every.chosen[config]]
            return sure, [[[]] * len(layer) for layer in sure]
        sure, loose = [], []
        for scores, rows, masked in zip(*(part[config] for part in (self.every.scores, self.every.rows,
                                                                    self.every.masked))):
            heads, T = scores.shape
            n, s = rows[0].shape[2], scores.clone()
            if masked is not None:
                n = T - len(masked[0]) // heads
                safe = max(1, int(n * press_of(config).alpha_safeguard)) if press_of(config).alpha_safeguard > 0 else 0
                s.scatter_(-1, s.topk(safe, dim=-1).indices, torch.finfo(s.dtype).max)
                s = s.reshape(1, -1)
                n *= heads
            ranked = s.sort(descending=True).values
            inside = ranked[:, n - 1:n]  # the last that stays, and the first that goes
            outside = ranked[:, n:n + 1] if n < s.shape[1] else torch.full_like(inside, -torch.inf)
            slack = TIE * inside.abs()
            stays = (s > outside + slack).reshape(heads, T)
            may = (s >= inside - slack).reshape(heads, T) & ~stays
            if masked is not None:
                is_kept = torch.ones(heads, T, dtype=torch.bool)
                is_kept[masked[1], masked[2]] = False
                assert not (stays & ~is_kept).any() and not (is_kept & ~(stays | may)).any(), "not what kvpress masks"
            sure.append([torch.nonzero(row).flatten().tolist() for row in stays])
            loose.append([torch.nonzero(row).flatten().tolist() for row in may])
        return sure, loose

    def cut_ties(self, config, kept):
        """Answers come from these positions: kvpress' own, but of those that tie at the boundary not the same."""
        for layer, (keys, values) in enumerate(self.full):
            at = torch.tensor(kept[layer])[..., None].expand(-1, -1, keys.shape[-1])
            self.every.rows[config][layer] = keys.gather(1, at)[None], values.gather(1, at)[None]

    def kept_together(self, config):
        """The same where the heads of a layer, or of all layers, share what they keep."""
        drop, layerwise = zip_values(config)
        s = self.every.scores[config]
        (layers, heads, T), flat = s.shape, s.reshape(len(s) if layerwise else 1, -1)
        n = flat.shape[1] - int(flat.shape[1] * drop)
        ranked = flat.sort(descending=True).values
        inside, outside = ranked[:, n - 1:n], ranked[:, n:n + 1]
        slack = TIE * inside.abs()
        stays = (flat > outside + slack).reshape(s.shape)
        may = (flat >= inside - slack).reshape(s.shape) & ~stays
        is_kept = torch.ones(s.shape, dtype=torch.bool)
        for layer, masked in enumerate(self.every.masked[config]):
            is_kept[layer, masked[1], masked[2]] = False
        assert not (stays & ~is_kept).any() and not (is_kept & ~(stays | may)).any(), "not what kvpress masks"
        return [[[torch.nonzero(head).flatten().tolist() for head in layer] for layer in which] for which in (stays, may)]

    @torch.no_grad()
    def answers(self, config, questions, n):
        """For each question, per step: the token, the gap between the two best logits, the second-best token."""
        cache = DynamicCache()
        for layer, (keys, values) in enumerate(self.every.rows[config]):
            cache.update(keys.bfloat16().float(), values.bfloat16().float(), layer)  # as payloads hold them
        for layer, masked in zip(self.model.model.layers, self.every.masked[config]):
            layer.self_attn.masked_key_indices = masked
        answers = []
        for question in questions:
            lengths, steps = [cache.get_seq_length(i) for i in range(len(cache))], []

            def watch(module, args, logits):
                best = logits[0, -1].topk(2)
                steps.append((best.indices[0].item(), (best.values[0] - best.values[1]).item(), best.indices[1].item()))

            if len(set(lengths)) > 1:
                # transformers makes one mask for all layers, of the first one's length. One token needs none, so the
                # last alone goes through the pipeline.
                for i, token in enumerate(question[:-1]):
                    self.model.model(input_ids=torch.tensor([[token]]), past_key_values=cache,
                                     position_ids=torch.tensor([[len(self.ids) + i]]))
            first = len(question) - 1 if len(set(lengths)) > 1 else 0
            hook = self.model.lm_head.register_forward_hook(watch)
            self.pipe.generate_answer(torch.tensor([question[first:]]), cache, len(self.ids) + first, n)
            hook.remove()
            self.pipe._remove_answer_from_cache(cache, lengths)
            answers.append(steps)
        for layer in self.model.model.layers:
            layer.self_attn.masked_key_indices = None
        return answers
