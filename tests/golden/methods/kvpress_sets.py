"""What kvpress (fp32) keeps of a text, and what it answers: the default model as a Hugging Face folder.

Presses run inside attention, but only the cache they leave differs: so one prefill serves them all, each press being
called as its own hook would call it.
"""
import packing
import torch
from kvpress import KeyDiffPress, KnormPress, SnapKVPress, StreamingLLMPress
from kvpress.pipeline import KVPressTextGenerationPipeline
from kvpress.presses.base_press import BasePress
from kvpress.utils import compute_n_kept
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache
from transformers.utils import logging

logging.disable_progress_bar()
logging.set_verbosity_error()
PRESSES = {"knorm": KnormPress, "keydiff": KeyDiffPress, "snapkv": SnapKVPress, "streamingllm": StreamingLLMPress}
TIE = 1e-5  # relative to the boundary score: another order of the same additions may swap two this close
MARK = "\u2603" * 3  # stands for the text in the chat template


class Every(BasePress):
    """Asks every press for its scores and its compressed keys and values; leaves the cache whole."""

    def __init__(self, presses):
        self.presses = presses
        self.scores = {name: [] for name in presses}  # [layer] of (heads, T)
        self.rows = {name: [] for name in presses}  # [layer] of (keys, values)

    def compress(self, module, hidden_states, keys, values, attentions, kwargs):
        for name, press in self.presses.items():
            self.scores[name].append(press.score(module, hidden_states, keys, values, attentions, kwargs)[0])
            self.rows[name].append(press.compress(module, hidden_states, keys, values, attentions, kwargs))
        return keys, values


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
        split = {c: c.split(":drop=") for c in configs}
        self.every = Every({c: PRESSES[method](float(drop)) for c, (method, drop) in split.items()})
        cache = DynamicCache()
        with torch.no_grad(), self.every(self.model):
            self.model.model(input_ids=torch.tensor([self.ids]), past_key_values=cache)
        self.full = [(layer.keys[0], layer.values[0]) for layer in cache.layers]  # [layer] of K and V, (heads, T, K)

    def encode(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False)

    def question(self, ask):
        """The ids that follow the context's in the whole prompt."""
        return self.encode(self.head + self.text + ask + self.tail)[len(self.ids):]

    def kept(self, config):
        """Per layer and head: positions kept for sure, and those that tie with the boundary."""
        n, sure, loose = compute_n_kept(len(self.ids), float(config.split("drop=")[1])), [], []
        for s in self.every.scores[config]:
            ranked = s.sort(descending=True).values
            inside, outside = ranked[:, n - 1:n], ranked[:, n:n + 1]  # the last that stays, the first that goes
            slack = TIE * inside.abs()
            stays = s > outside + slack
            may = (s >= inside - slack) & ~stays
            sure.append([torch.nonzero(row).flatten().tolist() for row in stays])
            loose.append([torch.nonzero(row).flatten().tolist() for row in may])
        return sure, loose

    @torch.no_grad()
    def answers(self, config, questions, n):
        """For each question, per step: the token, the gap between the two best logits, the second-best token."""
        cache = DynamicCache()
        for layer, (keys, values) in enumerate(self.every.rows[config]):
            cache.update(keys, values, layer)
        answers = []
        for question in questions:
            lengths, steps = [cache.get_seq_length(i) for i in range(len(cache))], []

            def watch(module, args, logits):
                best = logits[0, -1].topk(2)
                steps.append((best.indices[0].item(), (best.values[0] - best.values[1]).item(), best.indices[1].item()))

            hook = self.model.lm_head.register_forward_hook(watch)
            self.pipe.generate_answer(torch.tensor([question]), cache, len(self.ids), n)
            hook.remove()
            self.pipe._remove_answer_from_cache(cache, lengths)
            answers.append(steps)
        return answers
