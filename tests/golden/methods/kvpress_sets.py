"""What kvpress (fp32) keeps of a text, and what it answers: the default model as a Hugging Face folder."""
import torch
from kvpress import KeyDiffPress, KnormPress, SnapKVPress, StreamingLLMPress
from kvpress.pipeline import KVPressTextGenerationPipeline
from kvpress.utils import compute_n_kept
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache
from transformers.utils import logging

logging.disable_progress_bar()
logging.set_verbosity_error()

PRESSES = {"knorm": KnormPress, "keydiff": KeyDiffPress, "snapkv": SnapKVPress, "streamingllm": StreamingLLMPress}
MARK = "\u2603" * 3  # stands for the text in the chat template


class Oracle:
    def __init__(self, folder):
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa").eval()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.pipe = KVPressTextGenerationPipeline(model=self.model, tokenizer=self.tokenizer)
        chat = self.tokenizer.apply_chat_template([{"role": "user", "content": MARK}], add_generation_prompt=True,
                                                  tokenize=False)
        self.head, self.tail = chat.split(MARK)

    def encode(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False)

    def context(self, text):
        return self.encode(self.head) + self.encode(text)

    def question(self, text):
        return self.encode(text) + self.encode(self.tail)

    @torch.no_grad()
    def prefill(self, ids, press):
        cache = DynamicCache()
        with press(self.model):
            self.model.model(input_ids=torch.tensor([ids]), past_key_values=cache)
        return cache

    def keys_and_values(self, ids):
        """[layer] of K and V, each (heads, T, K)."""
        cache = self.prefill(ids, KnormPress(0.0))
        return [(layer.keys[0], layer.values[0]) for layer in cache.layers]

    def kept(self, ids, method, drop, tolerance):
        """Per layer and head: positions kept for sure, and those whose score ties with the boundary.

        The press runs as it is; its scores and their top-k are read off on the way. Scores within `tolerance`, relative
        to the boundary score, are ties: another order of the same additions may swap them.
        """
        sure, loose = [], []

        class Spy(PRESSES[method]):
            def score(press, *args, **kwargs):
                scores = super().score(*args, **kwargs)
                n = compute_n_kept(len(ids), drop)
                ranked = scores[0].sort(descending=True).values
                inside, outside = ranked[:, n - 1:n], ranked[:, n:n + 1]  # the last that stays, the first that goes
                slack = tolerance * inside.abs()
                stays = scores[0] > outside + slack
                may = (scores[0] >= inside - slack) & ~stays
                sure.append([torch.nonzero(row).flatten().tolist() for row in stays])
                loose.append([torch.nonzero(row).flatten().tolist() for row in may])
                return scores

        self.prefill(ids, Spy(drop))
        return sure, loose

    @torch.no_grad()
    def answers(self, ids, questions, press, n):
        """(answer's tokens, gap between the two best logits at each step, the second-best tokens) of each question."""
        cache = self.prefill(ids, press)
        out = []
        for q in questions:
            lengths = [cache.get_seq_length(i) for i in range(len(cache))]
            steps = []

            def watch(module, args, result):
                best = result[0, -1].topk(2)
                steps.append((best.indices[0].item(), (best.values[0] - best.values[1]).item(), best.indices[1].item()))

            hook = self.model.lm_head.register_forward_hook(watch)
            self.pipe.generate_answer(torch.tensor([q]), cache, len(ids), n)
            hook.remove()
            self.pipe._remove_answer_from_cache(cache, lengths)
            out.append(steps)
        return out
