"""evp.placed - the placed contexts by the hashes of their chunks, for engines that ask by hash alone.

LMCache and SGLang name a chunk of tokens (a page) by a hash over it and all tokens before it. So the tokens of every
placed context are read once and hashed as the engine does it; a refresh reads only those of new payloads. The rows of a
chunk go from the payload straight into the engine's buffer.
"""
import array
import functools
import json
import time
from concurrent.futures import ThreadPoolExecutor, wait

import evp
from evp import engine

TYPES = {"torch.bfloat16": ("bf16", 2), "torch.float16": ("f16", 2), "torch.float32": ("f32", 4)}  # rows: type, bytes
_OPEN = 16         # payloads kept open: neighbouring chunks are of the same context
_READERS = 8       # threads that read the tokens of new contexts
_REFRESH_S = 1.0   # at most this often
_AGAIN_S = 30.0    # what could not be read is tried again after


class _Context:
    """A context: where its payload is, the payload's `cache`, the hashes of its chunks in their order."""
    __slots__ = ("prefix", "cache", "hashes")

    def __init__(self, prefix, cache, hashes):
        self.prefix, self.cache, self.hashes = prefix, cache, hashes


class Placed:
    """The contexts of one namespace. hashes(tokens): of an array of ids, the hashes of its whole chunks. model(cache):
    the engine's engine.Model, as far as it is known, the rest from a payload's `cache`. worker: an executor with one
    thread, on which all changes are read."""

    def __init__(self, store, hashes, model, worker):
        self.store = store
        self.contexts, self.where, self.shared = {}, {}, {}  # by token digest; by hash; the other owners of a hash
        self._hashes, self._model, self._worker = hashes, model, worker
        self._judged, self._due, self._again = {}, 0.0, 0.0
        self.payload = functools.lru_cache(_OPEN)(self.store.payload)
        self._refreshing = worker.submit(self._refresh)

    def refresh(self, wait_s=0.2):
        """Reads what changed since a second ago; waits for it, but not longer than wait_s (None: until it is read)."""
        now = time.monotonic()
        if self._refreshing.done() and now >= self._due:
            self._due = now + _REFRESH_S
            self._refreshing = self._worker.submit(self._refresh)
        wait([self._refreshing], wait_s)

    def open(self, key):
        """The payload that has the chunk with a hash, and the chunk's number in it. LookupError, evp.Error."""
        context = self.where.get(key)
        if not context:
            raise LookupError("its context is no longer placed")
        return self.payload(context.prefix), context.hashes.index(key)

    def forget(self):
        """Closes the payloads that are kept open, when nobody reads them."""
        self.payload.cache_clear()

    def close(self):
        """After the worker has ended."""
        self.forget()
        self.store.close()

    def _refresh(self):
        try:
            if self.store.refresh() or time.monotonic() >= self._again:
                placed = [prefix for prefix in self.store.list() if engine.keeps_all(prefix.config)]
                self._update({prefix.token_digest: prefix for prefix in placed})
        except Exception as error:  # what was read before is still served
            engine.once(f"cannot refresh: {error}")

    def _update(self, placed):
        """Drops the contexts that are not in `placed`, and reads the new ones."""
        self.forget()
        new = []
        for digest, context in list(self.contexts.items()):
            if digest not in placed or placed[digest].checksum != context.prefix.checksum:
                self._drop(self.contexts.pop(digest))
        for digest, prefix in placed.items():
            if digest in self.contexts:
                self.contexts[digest].prefix = prefix
            else:
                new.append(prefix)
        self._again = float("inf")
        if new:
            with ThreadPoolExecutor(_READERS, "evp-read") as readers:
                for context in readers.map(self._read, new):
                    if context:
                        self._add(context)
                    else:
                        self._again = time.monotonic() + _AGAIN_S

    def _read(self, prefix):
        """A new context, without hashes if it is of no use to the engine; None: it cannot be read now."""
        try:
            with self.store.payload(prefix) as payload:
                cache = self._judge(payload)
                tokens = array.array("I", payload.fetch("tokens").tobytes() if cache else b"")
            return _Context(prefix, cache, self._hashes(tokens))
        except (evp.Error, OSError) as error:
            engine.once(f"cannot read a context: {error}")
            return None

    def _judge(self, payload):
        """The `cache` of a payload of the engine's model, the same object for all payloads that say the same; None: it
        is of another model."""
        says = tuple(payload.text(name) for name in ("cache", "model_name", "model_digest"))
        if says not in self._judged:
            cache = json.loads(says[0] or "null")
            model = self._model(cache) if cache else None
            if not cache:
                why = "a payload does not say what it was made from: pack it again"
            elif not (says[1] or model.digest):
                why = "a payload does not name its model: pack it again, or set model_digest"
            else:
                why = engine.difference(payload, model)
            if why:
                engine.once(why)
            self._judged[says] = None if why else cache
        return self._judged[says]

    def _add(self, context):
        self.contexts[context.prefix.token_digest] = context
        for key in context.hashes:
            if self.where.setdefault(key, context) is not context:
                self.shared.setdefault(key, []).append(context)

    def _drop(self, context):
        for key in context.hashes:
            others = self.shared.get(key, [])
            if self.where[key] is not context:
                others.remove(context)
            elif others:
                self.where[key] = others.pop()
            else:
                del self.where[key]
            if key in self.shared and not others:
                del self.shared[key]


def rank_heads(rank, size, n_heads):
    """The KV heads (first, end) of a rank of tensor parallelism; with more ranks than heads, several ranks have the
    same one. ValueError: they cannot be divided."""
    if size < 1 or not 0 <= rank < size or n_heads % size and size % n_heads:
        raise ValueError(f"{n_heads} KV heads cannot be divided among {size} ranks")
    first = rank * n_heads // size
    return first, first + max(1, n_heads // size)


def fill(payload, address, strides, layers, heads, rows, type, head_dim):
    """Writes rows (first, end) of the heads (first, end) of layers (first, end) to a buffer; strides, in elements: of K
    and V, layers, heads, rows. type: of TYPES."""
    name, size = type
    plane, layer, head, row = strides
    elements = (heads[1] - heads[0] - 1) * head + (rows[1] - rows[0] - 1) * row + head_dim
    for n, what in enumerate("kv"):
        for i in range(layers[1] - layers[0]):
            at = address + (n * plane + i * layer) * size
            payload.rows(layers[0] + i, what, (at, elements * size), heads=heads, rows=rows, type=name,
                         strides=(head, row, 1))
