"""evp.vllm_events - tells routers what is placed, as vLLM tells what its own cache has: as KV events.

    vllm serve MODEL --kv-events-config '{"enable_kv_cache_events": true}' --kv-transfer-config ...

vLLM then publishes a BlockStored for each placed context that this engine can load, and a BlockRemoved when it is no longer
placed: medium STORAGE, the tier's name as `ownership`, and the hashes that vLLM has for the same tokens. They are about whole
contexts of requests without cache_salt: of a prompt with fewer of their tokens, only parts (`evp-load --chunks`) are found.
"""
import array
from collections import Counter, deque
from itertools import islice

from vllm.distributed.kv_events import MEDIUM_STORAGE, BlockRemoved, BlockStored
from vllm.utils.hashing import get_hash_fn_by_name
from vllm.v1.core import kv_cache_utils

import evp
from evp import engine

BATCH = 256  # contexts at once: vLLM publishes these before more are read


class Events:
    """update() is called by one thread, take() by another."""

    def __init__(self, config):
        self.size, self.hash = config.cache_config.block_size, get_hash_fn_by_name(config.cache_config.prefix_caching_hash_algo)
        self.told, self.owners = {}, Counter()  # (token digest, tier) -> hashes of its blocks; (hash, tier) -> contexts
        self.events, self.more = deque(), True

    def update(self, store, usable, changed):
        """usable: whether this engine can load what is placed under a config."""
        self.more |= changed
        if not self.more or self.events or not hasattr(kv_cache_utils, "NONE_HASH"):  # which vLLM sets after us
            return
        placed = {(prefix.token_digest, prefix.tier): prefix for prefix in store.list() if usable(prefix.config)}
        new = placed.keys() - self.told.keys()
        for key in self.told.keys() - placed.keys():
            self._removed(key[1], self.told.pop(key))
        for key in islice(new, BATCH):
            self.told[key] = self._stored(store, placed[key])
        self.more = len(new) > BATCH

    def _stored(self, store, prefix):
        hashes = []
        try:
            with store.payload(prefix) as payload:
                tokens = array.array("i", payload.fetch("tokens").tobytes()).tolist()
        except evp.Error as error:
            engine.once(f"routers are not told of a context: {error}")
            return hashes
        for end in range(self.size, len(tokens) + 1, self.size):
            before = hashes[-1] if hashes else None
            hashes.append(kv_cache_utils.hash_block_tokens(self.hash, before, tokens[end - self.size:end]))
        self.owners.update((one, prefix.tier) for one in hashes)
        if hashes:
            self.events.append(BlockStored(
                block_hashes=[kv_cache_utils.maybe_convert_block_hash(one) for one in hashes], parent_block_hash=None,
                token_ids=tokens[:len(hashes) * self.size], block_size=self.size, lora_id=None, medium=MEDIUM_STORAGE,
                lora_name=None, group_idx=0, kv_cache_spec_kind="full_attention", ownership=prefix.tier))
        return hashes

    def _removed(self, tier, hashes):
        self.owners.subtract((one, tier) for one in hashes)
        gone = [one for one in hashes if not self.owners[one, tier]]
        for one in gone:
            del self.owners[one, tier]
        if gone:
            self.events.append(BlockRemoved(block_hashes=[kv_cache_utils.maybe_convert_block_hash(one) for one in gone],
                                            medium=MEDIUM_STORAGE, group_idx=0, ownership=tier))

    def take(self):
        while self.events:
            yield self.events.popleft()
