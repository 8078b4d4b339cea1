"""evp - finds, fetches and places the KV caches that EvicPress keeps on storage tiers.

    with evp.open("manifest.jsonl") as store:
        found = store.find(token_ids)
        if found:
            data = store.fetch(found)          # a safetensors file
            prefill(token_ids[found.n_tokens:])

A module over libevicpress. The header evicpress.h is the contract: its rules for threads, forks and kills hold here
too. Tokens and payloads use any object with the buffer protocol, without copies. Failures raise evp.Error.
"""
import array
import ctypes
import ctypes.util
import io
import mmap
import os
import weakref
from ctypes import POINTER, Structure, byref, c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p

__version__ = "0.3.0"
__all__ = ["open", "open_plan", "encode", "encodable", "library_version", "Store", "Prefix", "Payload", "Shape", "Tensor", "Tier", "Stats", "Plan", "Operation",
           "Status", "Error", "Gone", "Full", "Busy", "Unknown", "Exists"]

_MEMORY, _IO, DAMAGED, GONE, _SMALL, _ARGUMENT, _UNKNOWN, _EXISTS, _FULL, _BUSY = range(-1, -11, -1)


class Error(Exception):
    """A call of libevicpress failed: `code` is one of enum evp_code."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class Gone(Error):
    """The prefix is no longer placed: find again."""


class Full(Error):
    """A tier has too few free bytes."""


class Busy(Error):
    """Another process is changing a tier."""


class Unknown(Error):
    """There is no such context, tier or tensor."""


class Exists(Error):
    """The plan already has this context."""


_KINDS = {GONE: Gone, _FULL: Full, _BUSY: Busy, _UNKNOWN: Unknown, _EXISTS: Exists}

# ---- evicpress.h ---------------------------------------------------------------------------------------------


class _Error(Structure):
    _fields_ = [("code", c_int), ("text", c_char * 512)]


class _Prefix(Structure):
    _fields_ = [("n_tokens", c_int64), ("size", c_uint64), ("config", c_char * 128), ("tier", c_char * 32),
                ("token_digest", c_char * 72), ("checksum", c_char * 24), ("opaque", c_char * 64)]


class _Options(Structure):
    _fields_ = [("size", c_size_t), ("name_space", c_char_p), ("wait_s", c_double), ("verify", c_int)]


class _Tier(Structure):
    _fields_ = [("name", c_char * 32), ("code", c_int), ("text", c_char * 256), ("n_placed", c_uint64),
                ("reserved", c_uint64 * 8)]


class _Location(Structure):
    _fields_ = [("fd", c_int), ("n_dims", c_int), ("offset", c_uint64), ("size", c_uint64), ("dim", c_int64 * 8),
                ("name", c_char * 128), ("type", c_char * 8), ("checksum", c_char * 24), ("reserved", c_uint64 * 8)]


class _Range(Structure):
    _fields_ = [("tensor", c_char_p), ("first", c_int64), ("n", c_int64), ("first_row", c_int64), ("n_rows", c_int64),
                ("verify", c_int), ("reserved", c_uint64 * 4)]


class _Shape(Structure):
    _fields_ = [("n_layers", c_int64), ("n_heads", c_int64), ("head_dim", c_int64), ("n_tokens", c_int64),
                ("n_rows", c_int64), ("reserved", c_uint64 * 8)]


class _Rows(Structure):
    _fields_ = [("layer", c_int64), ("side", c_int), ("type", c_int), ("first", c_int64), ("n", c_int64),
                ("first_row", c_int64), ("n_rows", c_int64), ("verify", c_int), ("pairs", c_int),
                ("head_stride", c_int64), ("row_stride", c_int64), ("column_stride", c_int64), ("reserved", c_uint64 * 8)]


class _Put(Structure):
    _fields_ = [("id", c_char_p), ("tier", c_char_p), ("payload", c_void_p), ("size", c_size_t), ("chunks", c_uint64),
                ("reserved", c_uint64 * 7)]


class _Stats(Structure):
    _fields_ = [("tier", c_char * 32), ("config", c_char * 128), ("finds", c_uint64), ("tokens_asked", c_uint64),
                ("hits", c_uint64), ("tokens_hit", c_uint64), ("reads", c_uint64), ("read_bytes", c_uint64),
                ("read_s", c_double), ("read_square_bytes", c_double), ("read_byte_s", c_double), ("puts", c_uint64),
                ("moves", c_uint64), ("evictions", c_uint64), ("removes", c_uint64), ("n_placed", c_uint64),
                ("placed_bytes", c_uint64), ("errors", c_uint64 * 16), ("reserved", c_uint64 * 16)]


class _Encode(Structure):
    _fields_ = [("config", c_char_p), ("model_digest", c_char_p), ("model_name", c_char_p), ("cache", c_char_p), ("tokens", c_void_p),
                ("n_tokens", c_int64), ("n_layers", c_int64), ("n_heads", c_int64), ("head_dim", c_int64), ("type", c_int),
                ("rows", POINTER(c_void_p)), ("head_stride", c_int64), ("row_stride", c_int64), ("reserved", c_uint64 * 8)]


class _Variant(Structure):
    _fields_ = [("config", c_char_p), ("bytes", c_int64), ("quality", c_double), ("decompress_s", c_double),
                ("reserved", c_uint64 * 4)]


class _Context(Structure):
    _fields_ = [("id", c_char_p), ("token_digest", c_char_p), ("tokens", c_void_p), ("n_tokens", c_int64),
                ("kv_bytes", c_int64), ("frequency", c_double), ("prefill_s", c_double), ("question_s", c_double),
                ("variant", POINTER(_Variant)), ("n_variants", c_size_t), ("reserved", c_uint64 * 8)]


class _Update(Structure):
    _fields_ = [("id", c_char_p), ("frequency", c_double), ("variant", POINTER(_Variant)), ("n_variants", c_size_t),
                ("reserved", c_uint64 * 8)]


class _Use(Structure):
    _fields_ = [("id", c_char_p), ("token_digest", c_char_p), ("tokens", c_void_p), ("n_tokens", c_int64),
                ("at_s", c_double), ("reserved", c_uint64 * 7)]


class _Operation(Structure):
    _fields_ = [("kind", c_int), ("id", c_char_p), ("from_config", c_char_p), ("from_tier", c_char_p),
                ("to_config", c_char_p), ("to_tier", c_char_p), ("from_bytes", c_int64), ("to_bytes", c_int64),
                ("reserved", c_uint64 * 4)]


class _Operations(Structure):
    _fields_ = [("at", POINTER(_Operation)), ("n", c_size_t), ("event", c_uint64), ("reserved", c_uint64 * 4)]


class _PlanTier(Structure):
    _fields_ = [("name", c_char * 32), ("capacity", c_int64), ("free_bytes", c_int64)]


class _PlanState(Structure):
    _fields_ = [("n_contexts", c_int64), ("objective", c_double), ("upper_bound", c_double), ("gap", c_double),
                ("n_tiers", c_size_t), ("tier", _PlanTier * 16), ("reserved", c_uint64 * 8)]


_ARGUMENTS = {
    "evp_open_with": [POINTER(c_void_p), c_char_p, POINTER(_Options)],
    "evp_get_tier": [c_void_p, c_size_t, POINTER(_Tier)],
    "evp_find": [c_void_p, c_void_p, c_size_t, POINTER(_Prefix)],
    "evp_fetch": [c_void_p, POINTER(_Prefix), c_void_p, c_size_t],
    "evp_payload_open": [POINTER(c_void_p), c_void_p, POINTER(_Prefix)],
    "evp_locate": [c_void_p, c_char_p, POINTER(_Location)],
    "evp_locate_at": [c_void_p, c_size_t, POINTER(_Location)],
    "evp_fetch_range": [c_void_p, POINTER(_Range), c_void_p, c_size_t],
    "evp_list": [c_void_p, POINTER(_Prefix), c_size_t],
    "evp_payload_shape": [c_void_p, POINTER(_Shape)],
    "evp_kept": [c_void_p, c_int64, POINTER(c_int64), c_size_t],
    "evp_fetch_rows": [c_void_p, POINTER(_Rows), c_void_p, c_size_t],
    "evp_encode_rows": [POINTER(_Encode), POINTER(c_void_p), POINTER(c_size_t)],
    "evp_put": [c_void_p, POINTER(_Put)],
    "evp_move": [c_void_p, c_char_p, c_char_p],
    "evp_remove": [c_void_p, c_char_p],
    "evp_refresh": [c_void_p],
    "evp_stats": [c_void_p, c_size_t, POINTER(_Stats)],
    "evp_write_metrics": [c_void_p, c_char_p],
    "evp_plan_open": [POINTER(c_void_p), c_char_p],
    "evp_plan_admit": [c_void_p, POINTER(_Context), POINTER(_Operations)],
    "evp_plan_update": [c_void_p, POINTER(_Update), POINTER(_Operations)],
    "evp_plan_remove": [c_void_p, c_char_p, POINTER(_Operations)],
    "evp_plan_used": [c_void_p, POINTER(_Use), POINTER(_Operations)],
    "evp_plan_lost": [c_void_p, c_char_p],
    "evp_plan_tier_lost": [c_void_p, c_char_p],
    "evp_plan_status": [c_void_p, POINTER(_PlanState)],
    "evp_plan_save": [c_void_p, c_char_p],
}
_CLOSERS = ("evp_close", "evp_payload_close", "evp_plan_close", "evp_operations_release")
_library = None


def _lib():
    """The library, opened when it is first needed: EVP_LIBRARY, the wheel's own, or where the dynamic loader looks."""
    global _library
    if _library is None:
        own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "libevicpress.so.1")
        path = os.environ.get("EVP_LIBRARY") or (own if os.path.exists(own) else None)
        path = path or ctypes.util.find_library("evicpress") or "libevicpress.so.1"
        try:
            lib = ctypes.CDLL(path)
        except OSError as failure:
            raise ImportError(f"evp needs libevicpress.so.1: install the wheel that `make wheel` makes, which carries it, or "
                              f"`make install-lib` and ldconfig, or name it in EVP_LIBRARY ({failure})") from None
        for name, arguments in _ARGUMENTS.items():
            getattr(lib, name).argtypes = arguments + [POINTER(_Error)]
            getattr(lib, name).restype = c_int
        for name in _CLOSERS:
            getattr(lib, name).argtypes = [c_void_p]
            getattr(lib, name).restype = None
        lib.evp_version.restype = c_char_p
        lib.evp_payload_text.argtypes, lib.evp_payload_text.restype = [c_void_p, c_char_p], c_char_p
        _library = lib
    return _library


def library_version():
    """The version of the loaded libevicpress."""
    return _lib().evp_version().decode()


def _call(name, *arguments):
    """Calls a function that returns >= 0, or a negative code with an error."""
    error = _Error()
    code = getattr(_lib(), name)(*arguments, byref(error))
    if code < 0:
        raise _KINDS.get(code, Error)(code, error.text.decode("utf-8", "replace"))
    return code


# ---- buffers ------------------------------------------------------------------------------------------


class _PyBuffer(Structure):
    """Py_buffer of CPython; its members are unchanged since 3.0."""
    _fields_ = [("buf", c_void_p), ("obj", c_void_p), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
                ("readonly", c_int), ("ndim", c_int), ("format", c_char_p), ("shape", c_void_p), ("strides", c_void_p),
                ("suboffsets", c_void_p), ("internal", c_void_p)]


_WRITABLE, _FORMAT = 0x0001, 0x0004
_get_buffer, _release_buffer = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release
_get_buffer.argtypes, _get_buffer.restype = [ctypes.py_object, POINTER(_PyBuffer), c_int], c_int
_release_buffer.argtypes, _release_buffer.restype = [POINTER(_PyBuffer)], None


class _Bytes:
    """The contiguous memory of an object with the buffer protocol, valid inside the `with` block."""

    def __init__(self, owner, flags=0):
        self.owner, self.flags, self.view = owner, flags, _PyBuffer()

    def __enter__(self):
        _get_buffer(self.owner, byref(self.view), self.flags)  # raises BufferError or TypeError
        self.address, self.size = self.view.buf, self.view.len
        return self

    def __exit__(self, *_):
        _release_buffer(byref(self.view))


def _tokens(tokens):
    """Token ids as an object whose memory is int32."""
    try:
        with memoryview(tokens) as view:
            if view.format in ("i", "l", "<i", "=i", "@i") and view.itemsize == 4:
                return tokens
            return array.array("i", view.tolist())
    except TypeError:
        return array.array("i", tokens)


# ---- stores ---------------------------------------------------------------------------------------------


class Prefix:
    """A placed prefix: n_tokens, size (bytes of its payload), config, tier, token_digest, checksum; part: it is only a
    part of a context. Plain data."""

    def __init__(self, raw):
        self._raw = raw

    n_tokens = property(lambda self: self._raw.n_tokens)
    size = property(lambda self: self._raw.size)
    config = property(lambda self: self._raw.config.decode())
    tier = property(lambda self: self._raw.tier.decode())
    token_digest = property(lambda self: self._raw.token_digest.decode())
    checksum = property(lambda self: self._raw.checksum.decode())
    part = property(lambda self: not self._raw.checksum)

    def __getstate__(self):
        return bytes(self._raw)

    def __setstate__(self, state):
        self._raw = _Prefix.from_buffer_copy(state)

    def __repr__(self):
        return f"<evp.Prefix {self.n_tokens} tokens on {self.tier} as {self.config}, {self.size} bytes>"


class Tier:
    """A tier of a store: name, n_placed, text: why nothing can be found there, or ""."""

    def __init__(self, raw):
        self.name, self.code, self.text, self.n_placed = raw.name.decode(), raw.code, raw.text.decode("utf-8", "replace"), raw.n_placed

    def __repr__(self):
        return f"<evp.Tier {self.name}: {self.text or f'{self.n_placed} placed'}>"


class Stats:
    """What a store has counted on a tier as a config ("": all): tier, config, finds, tokens_asked, hits, tokens_hit, reads,
    read_bytes, read_s, puts, moves, evictions, removes, n_placed, placed_bytes; errors: calls that failed, by code."""

    def __init__(self, raw):
        for name, _ in raw._fields_[:-2]:
            value = getattr(raw, name)
            setattr(self, name, value.decode() if isinstance(value, bytes) else value)
        self.errors = {-i: n for i, n in enumerate(raw.errors) if n}

    def __repr__(self):
        return f"<evp.Stats {self.tier or 'all tiers'} {self.config}: {self.hits} hits, {self.reads} reads>"


class _Handle:
    """A handle of libevicpress, closed once."""
    _closer = None

    def __init__(self, raw):
        self._raw = raw

    def _open(self):
        if not self._raw:
            raise ValueError(f"{type(self).__name__} is closed")
        return self._raw

    def close(self):
        """No other call on the handle may be running."""
        raw, self._raw = self._raw, None
        if raw:
            getattr(_lib(), self._closer)(raw)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_raw", None) and _library is not None:
            self.close()


class Store(_Handle):
    """A manifest and the contents of its tiers; made by evp.open()."""
    _closer = "evp_close"

    def find(self, tokens):
        """The longest prefix of the tokens on a tier: a Prefix, or None."""
        raw = _Prefix()
        with _Bytes(_tokens(tokens)) as at:
            hit = _call("evp_find", self._open(), at.address, at.size // 4, byref(raw))
        return Prefix(raw) if hit else None

    def list(self):
        """All placed contexts of the store's namespace, each once, in its fastest tier: a list of Prefix. The tensor
        "tokens" of a payload has a context's ids."""
        n, have = _call("evp_list", self._open(), None, 0), -1
        while n > have:  # more may have been placed since
            have, raw = n, (_Prefix * n)()
            n = _call("evp_list", self._open(), raw, have)
        return [Prefix(_Prefix.from_buffer_copy(r)) for r in raw[:n]]

    def fetch(self, prefix, into=None):
        """Reads the payload of a prefix, a safetensors file, into the writable buffer `into`, or a new one. Returns a
        memoryview of the bytes."""
        into = bytearray(prefix.size) if into is None else into
        with _Bytes(into, _WRITABLE) as at:
            _call("evp_fetch", self._open(), byref(prefix._raw), at.address, at.size)
        return memoryview(into).cast("B")[:prefix.size]

    def payload(self, prefix):
        """Opens the payload of a prefix for reading single tensors or ranges: a Payload."""
        raw = c_void_p()
        _call("evp_payload_open", byref(raw), self._open(), byref(prefix._raw))
        return Payload(raw.value, prefix.n_tokens if prefix.part else None)

    def put(self, id, tier, payload, chunks=False):
        """Places a payload (the bytes of its file) and replaces the context's other payloads. chunks: prompts also find
        its parts."""
        with _Bytes(payload) as at:
            put = _Put(os.fsencode(id), os.fsencode(tier), at.address, at.size, 1 if chunks else 0)
            _call("evp_put", self._open(), byref(put))

    def move(self, id, tier):
        """Moves the payload of a context to a tier."""
        _call("evp_move", self._open(), os.fsencode(id), os.fsencode(tier))

    def remove(self, id):
        """Removes the payload of a context from all tiers."""
        _call("evp_remove", self._open(), os.fsencode(id))

    def refresh(self):
        """Reads changes on disk; returns whether there were any."""
        return _call("evp_refresh", self._open()) == 1

    def tiers(self):
        """The tiers of the manifest: a list of Tier."""
        tiers, raw = [], _Tier()
        while _call("evp_get_tier", self._open(), len(tiers), byref(raw)):
            tiers.append(Tier(raw))
        return tiers

    def stats(self):
        """What this process has counted since it opened the store: a list of Stats, the first of all tiers."""
        stats, raw = [], _Stats()
        while _call("evp_stats", self._open(), len(stats), byref(raw)):
            stats.append(Stats(raw))
        return stats

    def write_metrics(self, path):
        """Writes the same as Prometheus text, for node_exporter's textfile collector, whole or not at all."""
        _call("evp_write_metrics", self._open(), os.fsencode(path))


def open(manifest, name_space=None, wait_s=10.0, verify=True):
    """Opens a manifest and its tiers: a Store. wait_s: seconds that a change waits for those of other threads and processes;
    verify=False: fetch() does not compare checksums."""
    raw = c_void_p()
    options = _Options(ctypes.sizeof(_Options), None if name_space is None else os.fsencode(name_space), wait_s,
                       0 if verify else 1)
    _call("evp_open_with", byref(raw), os.fsencode(manifest), byref(options))
    return Store(raw.value)


# ---- payloads ---------------------------------------------------------------------------------------------


class Tensor:
    """Location of a tensor: name, type ("BF16"), shape, offset and size in bytes of the file, checksum (XXH3-64,
    hex)."""

    def __init__(self, raw):
        self.name, self.type, self.shape = raw.name.decode(), raw.type.decode(), tuple(raw.dim[:raw.n_dims])
        self.offset, self.size, self.checksum = raw.offset, raw.size, raw.checksum.decode()

    def __repr__(self):
        return f"<evp.Tensor {self.name}: {self.type} {list(self.shape)}, {self.size} bytes>"


def _descriptor(raw):
    if raw.fd < 0:
        raise io.UnsupportedOperation("the payload is in no file: use fetch()")
    return raw.fd


class Shape:
    """What a payload holds: n_layers, n_heads (key-value heads), head_dim, n_tokens (the position of the next token),
    n_rows (rows of every head of every layer; None: they differ)."""

    def __init__(self, raw):
        self.n_layers, self.n_heads, self.head_dim, self.n_tokens = raw.n_layers, raw.n_heads, raw.head_dim, raw.n_tokens
        self.n_rows = None if raw.n_rows < 0 else raw.n_rows


_TYPES = {"bf16": 0, "f16": 1, "f32": 2, "e4m3": 3}
_SIDES = {"k": 0, "v": 1}


class Payload(_Handle):
    """An open payload; made by Store.payload(). Iterating gives its tensors in the file's order. For a part of a
    context it is the file of the whole context; fetch() reads only the part's rows."""
    _closer = "evp_payload_close"

    def __init__(self, raw, part=None):
        super().__init__(raw)
        self._part = part

    def __iter__(self):
        raw, i = _Location(), 0
        while _call("evp_locate_at", self._open(), i, byref(raw)):
            yield Tensor(raw)
            i += 1

    def __getitem__(self, name):
        raw = _Location()
        _call("evp_locate", self._open(), name.encode(), byref(raw))
        return Tensor(raw)

    def text(self, name):
        """A text of the metadata: "model_name", "cache" (JSON) and so on; None if the payload lacks it."""
        text = _lib().evp_payload_text(self._open(), name.encode())
        return None if text is None else text.decode()

    def fileno(self):
        """The file's descriptor, for your own reads, valid until close(). A payload on Redis has none: OSError."""
        raw = _Location()
        _call("evp_locate", self._open(), None, byref(raw))
        return _descriptor(raw)

    def fetch(self, name, into=None, heads=None, rows=None, verify=True):
        """Reads a tensor into the writable buffer `into`, or a new one: all of it, or `heads` of its first dimension
        and `rows` of its second, each (first, end). Returns a memoryview of the bytes."""
        tensor = self[name]
        shape = list(tensor.shape) + [1, 1]
        cells = shape[0] * shape[1]
        if self._part:
            shape[0 if len(tensor.shape) == 1 else 1] = self._part
        first, end = heads or (0, shape[0])
        first_row, end_row = rows or (0, shape[1])
        size = tensor.size // cells * max(0, end - first) * max(0, end_row - first_row) if cells else tensor.size
        if heads and end <= first or rows and end_row <= first_row:
            raise ValueError("heads and rows are (first, end), and not empty")
        into = bytearray(size) if into is None else into
        raw = _Range(tensor.name.encode(), first, end - first, first_row, end_row - first_row, 0 if verify else 1)
        with _Bytes(into, _WRITABLE) as at:
            _call("evp_fetch_range", self._open(), byref(raw), at.address, at.size)
        return memoryview(into).cast("B")[:size]

    @property
    def shape(self):
        raw = _Shape()
        _call("evp_payload_shape", self._open(), byref(raw))
        return Shape(raw)

    def kept(self, layer):
        """How many rows each head of a layer has."""
        raw = (c_int64 * self.shape.n_heads)()
        _call("evp_kept", self._open(), layer, raw, len(raw))
        return list(raw)

    def rows(self, layer, side, into, heads=None, rows=None, type="bf16", strides=None, pairs=False, verify=True):
        """Writes the keys ("k") or values ("v") of a layer, decoded whatever the config, into a writable buffer or an
        (address, size in bytes), as "bf16", "f16", "f32" or "e4m3": of `heads` and `rows`, each (first, end). strides:
        numbers from a head, a row, a column to the next; by default [heads, rows, head_dim] without gaps. pairs: rotated
        columns of keys in pairs, as llama.cpp has them in Llama models."""
        if isinstance(into, tuple):
            return self._rows(layer, side, into, heads, rows, type, strides, pairs, verify)
        with _Bytes(into, _WRITABLE) as at:
            return self._rows(layer, side, (at.address, at.size), heads, rows, type, strides, pairs, verify)

    def _rows(self, layer, side, into, heads, rows, type, strides, pairs, verify):
        first, end = heads or (0, 0)
        first_row, end_row = rows or (0, 0)
        if heads and end <= first or rows and end_row <= first_row:
            raise ValueError("heads and rows are (first, end), and not empty")
        raw = _Rows(layer, _SIDES[side], _TYPES[type], first, end - first, first_row, end_row - first_row,
                    0 if verify else 1, 1 if pairs else 0, *(strides or (0, 0, 0)))
        _call("evp_fetch_rows", self._open(), byref(raw), *into)

    def map(self, name=None):
        """A read-only memoryview of a tensor, or of the whole file, mapped from the page cache: bytes are read on
        access, and no checksum is compared. It stays valid after close()."""
        raw = _Location()
        _call("evp_locate", self._open(), None if name is None else name.encode(), byref(raw))
        whole = mmap.mmap(_descriptor(raw), 0, access=mmap.ACCESS_READ)
        return memoryview(whole)[raw.offset:raw.offset + raw.size]


_libc = ctypes.CDLL(None)
_libc.free.argtypes, _libc.free.restype = [c_void_p], None


def encodable(config):
    """Whether encode() makes payloads of this config: no other needs nothing but the rows."""
    return "+" not in config and config.partition(":")[0] in ("none", "kivi", "int8", "int4", "fp8", "nvfp4", "turboquant", "cachegen")


def encode(config, tokens, rows, shape, type, strides=(0, 0), model_digest=None, model_name=None, cache=None):
    """A payload, for Store.put(), of rows that an engine has computed. rows: of each layer the addresses of the keys, rotated, and
    of the values; shape: (layers, key-value heads, head_dim); type: "bf16", "f16" or "f32"; strides: numbers from a head and from a
    row to the next. model_digest, model_name, cache: as Payload.text() gives them."""
    pointers, payload, size = (c_void_p * len(rows))(*rows), c_void_p(), c_size_t()
    if len(rows) != 2 * shape[0]:
        raise ValueError(f"{len(rows)} addresses of rows, not {2 * shape[0]}")
    texts = [None if text is None else text.encode() for text in (config, model_digest, model_name, cache)]
    with _Bytes(_tokens(tokens)) as at:
        raw = _Encode(*texts, at.address, at.size // 4, *shape, _TYPES[type], pointers, *strides)
        _call("evp_encode_rows", byref(raw), byref(payload), byref(size))
    made = (c_char * size.value).from_address(payload.value)
    weakref.finalize(made, _libc.free, payload.value)
    return made


# ---- plans --------------------------------------------------------------------------------------------------


class Operation:
    """An operation to carry out: kind ("insert", "recompress", "move", "evict"), id, from_config, from_tier, to_config,
    to_tier, from_bytes, to_bytes. A context that is not stored has tier "recompute"."""
    _kinds = {1: "insert", 2: "recompress", 3: "move", 4: "evict"}

    def __init__(self, raw):
        self.kind = self._kinds[raw.kind]
        for name in ("id", "from_config", "from_tier", "to_config", "to_tier"):
            setattr(self, name, getattr(raw, name).decode())
        self.from_bytes, self.to_bytes = raw.from_bytes, raw.to_bytes

    def __repr__(self):
        return (f"<evp.Operation {self.kind} {self.id}: {self.from_config} on {self.from_tier} -> {self.to_config} on "
                f"{self.to_tier}>")


class Status:
    """State of a plan: n_contexts, objective, upper_bound, gap, and free_bytes of each tier by name (None:
    unlimited)."""

    def __init__(self, raw):
        self.n_contexts, self.objective, self.upper_bound, self.gap = raw.n_contexts, raw.objective, raw.upper_bound, raw.gap
        self.free_bytes = {t.name.decode(): None if t.free_bytes == 2**63 - 1 else t.free_bytes
                           for t in raw.tier[:raw.n_tiers]}


def _variants(variants):
    raw = (_Variant * max(1, len(variants)))()
    for to, (config, size, quality, *decompress_s) in zip(raw, variants):
        to.config, to.bytes, to.quality = config.encode(), size, quality
        to.decompress_s = decompress_s[0] if decompress_s else 0.0
    return raw


class Plan(_Handle):
    """A live plan; made by evp.open_plan(). Events return the operations to carry out, in order."""
    _closer = "evp_plan_close"

    def _event(self, name, argument):
        raw = _Operations()
        _call(name, self._open(), argument, byref(raw))
        try:
            return [Operation(raw.at[i]) for i in range(raw.n)]
        finally:
            _lib().evp_operations_release(byref(raw))

    def admit(self, id, tokens, frequency, prefill_s, variants, question_s=0.0, kv_bytes=0):
        """Adds a new context. variants: (config, bytes, quality[, decompress_s]) of each variant that it could be
        stored as."""
        raw = _variants(variants)
        with _Bytes(_tokens(tokens)) as at:
            context = _Context(id=os.fsencode(id), tokens=at.address, n_tokens=at.size // 4, kv_bytes=kv_bytes,
                               frequency=frequency, prefill_s=prefill_s, question_s=question_s, variant=raw,
                               n_variants=len(variants))
            return self._event("evp_plan_admit", byref(context))

    def update(self, id, frequency, variants=None):
        """Changes a context's frequency, or also its variants."""
        raw = None if variants is None else _variants(variants)
        update = _Update(id=os.fsencode(id), frequency=frequency, variant=raw, n_variants=len(variants or ()))
        return self._event("evp_plan_update", byref(update))

    def remove(self, id):
        """Removes a context that is no longer used."""
        return self._event("evp_plan_remove", os.fsencode(id))

    def used(self, id, tokens=(), at_s=0, token_digest=None, n_tokens=0):
        """A context was used, at a time in seconds if that is told: the plan learns how often each one is, and how busy
        GPUs and tiers are. One that is not in the plan enters it with what is typical of its length; token_digest and n_tokens
        may take the place of its tokens."""
        with _Bytes(_tokens(tokens)) as at:
            use = _Use(id=os.fsencode(id), tokens=at.address, n_tokens=n_tokens or at.size // 4, at_s=at_s,
                       token_digest=token_digest and token_digest.encode())
            return self._event("evp_plan_used", byref(use))

    def lost(self, id):
        """The payload of a context is gone, or could not be put: it has no place until update() or a later event finds
        it one. evicpress_plan.h says what to do when a change fails."""
        _call("evp_plan_lost", self._open(), os.fsencode(id))

    def tier_lost(self, tier):
        """The same for all contexts on a tier."""
        _call("evp_plan_tier_lost", self._open(), os.fsencode(tier))

    def status(self):
        raw = _PlanState()
        _call("evp_plan_status", self._open(), byref(raw))
        return Status(raw)

    def save(self, manifest):
        """Writes the plan as a manifest, for evp-pack, evp-load and evp.open()."""
        _call("evp_plan_save", self._open(), os.fsencode(manifest))


def open_plan(manifest):
    """Opens a manifest of `evp-plan --online` as a Plan."""
    raw = c_void_p()
    _call("evp_plan_open", byref(raw), os.fsencode(manifest))
    return Plan(raw.value)
