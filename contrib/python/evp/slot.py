"""evp.slot - writes a placed context as a slot file of llama-server (and llama-cpp-python).

    python -m evp.slot --manifest M --model MODEL.gguf --template PROBE.bin --output FILE <TOKENS

TOKENS are ids in decimal; the longest placed prefix of them is written. The template is a slot file that the same server
saved (POST /slots/0?action=save, after a completion of a few tokens): version, streams, number formats and rotation are
taken from it. A server aborts when it restores a file that was cut, so files appear whole or not at all.

    u32 0x67677371, u32 version, u32 words, i32 word[words]     the tokens, or -1, u32 1, u32 T, i32 token[T], u32 0
    u32 streams; for each: u32 n cells                          a stream without cells ends here
      n times: i32 position, u32 1, i32 0
      u32 V transposed, u32 layers; version 4: u32 block of K's rotation, u32 of V's
      for each layer: i32 type, u64 bytes of a row, rows of K   a row: all KV heads
      for each layer: the same of V; if transposed: i32 type, u32 bytes of an element, u32 columns, columns of V
"""
import argparse
import array
import concurrent.futures
import contextlib
import os
import struct
import sys

import evp
import evp.gguf

MAGIC, MARK, FORM = 0x67677371, -1, 1
TYPES = {0: ("f32", 4), 1: ("f16", 2), 30: ("bf16", 2)}
Q8_0, BLOCK, BLOCK_BYTES = 8, 32, 34
CELL = 12
CHUNK = 1024  # blocks of columns that are rotated and quantised at once, so that they stay in the cache


class Refused(ValueError):
    """A template that is not understood, or a variant that a slot cannot hold."""


class _Reader:
    def __init__(self, path):
        self.path, self.file = path, open(path, "rb")
        self.left = os.fstat(self.file.fileno()).st_size

    def bytes(self, n):
        self._take(n)
        data = self.file.read(n)
        if len(data) != n:
            raise Refused(f"slot file '{self.path}' ends too early")
        return data

    def skip(self, n):
        self._take(n)
        self.file.seek(n, os.SEEK_CUR)

    def _take(self, n):
        if n > self.left:
            raise Refused(f"slot file '{self.path}' ends too early")
        self.left -= n

    def get(self, letters):
        return struct.unpack("<" + letters, self.bytes(struct.calcsize("<" + letters)))

    def refuse(self, what):
        raise Refused(f"slot file '{self.path}': {what}")


class Template:
    """The form of a slot file: version, marked (the tokens begin with MARK), n_streams, transposed, rot_k, rot_v; k and v:
    for each layer (type, bytes of a row), or of V transposed (type, bytes of an element, columns). Also its n_tokens and
    n_cells."""

    def __init__(self, path):
        at = _Reader(path)
        with at.file:
            magic, self.version, n_words = at.get("III")
            if magic != MAGIC or self.version not in (3, 4):
                at.refuse("not a slot file of version 3 or 4")
            self._tokens(at, n_words)
            self.n_streams, = at.get("I")
            self.n_cells = 0
            for _ in range(self.n_streams):
                self._stream(at)
            if not self.n_cells:
                at.refuse("it has no cells")
            if at.left:
                at.refuse(f"{at.left} bytes are left over: not a plain attention cache")

    def _tokens(self, at, n_words):
        first = at.get(f"{min(n_words, 3)}i")
        self.marked = first[:1] == (MARK,)
        self.n_tokens = n_words - 4 if self.marked else n_words
        if self.marked and first[1:] != (FORM, self.n_tokens):
            at.refuse("its tokens have a form that is not known, or media among them")
        at.skip(4 * (n_words - len(first)))

    def _stream(self, at):
        n, = at.get("I")
        if not n:
            return
        if self.n_cells:
            at.refuse("more than one stream has cells")
        self.n_cells = n
        cells = memoryview(at.bytes(CELL * n)).cast("I")
        if any(one != 1 for one in cells[1::3]):
            at.refuse("its cells are not those of a plain attention cache")
        self.transposed, n_layers = at.get("II")
        if self.transposed > 1 or not n_layers:
            at.refuse(f"{n_layers} layers, V transposed: {self.transposed}")
        self.rot_k, self.rot_v = at.get("II") if self.version > 3 else (0, 0)
        self.k = [self._rows(at, n, "iQ") for _ in range(n_layers)]
        self.v = [self._rows(at, n, "iII" if self.transposed else "iQ") for _ in range(n_layers)]

    def _rows(self, at, n, letters):
        head = at.get(letters)
        if head[0] not in TYPES and head[0] != Q8_0:
            at.refuse(f"a cache of type {head[0]} is not f32, f16, bf16 or q8_0")
        at.skip(n * (head[1] * head[2] if len(head) > 2 else head[1]))
        return head


# ---- rows ------------------------------------------------------------------------------------------------------


def _q8_0(rows, rotation):
    """Rows of float32 as blocks of q8_0, rotated in blocks of `rotation` columns, as ggml does it."""
    import numpy as np
    h = np.ones((1, 1), np.float32)
    while len(h) < rotation:
        h = np.block([[h, h], [h, -h]])
    h = (h / np.sqrt(np.float32(len(h)))).astype(np.float32)
    rows, out = rows.reshape(-1, max(BLOCK, rotation)), np.empty((rows.size // BLOCK, BLOCK_BYTES), np.uint8)
    for first in range(0, len(rows), CHUNK):
        part = rows[first:first + CHUNK]
        blocks = (part @ h if rotation else part.copy()).reshape(-1, BLOCK)
        scale = np.maximum(blocks.max(-1, keepdims=True), -blocks.min(-1, keepdims=True)) / np.float32(127)
        blocks *= np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=scale > 0)
        blocks += np.copysign(np.float32(0.5), blocks)  # half away from 0: the conversion cuts
        to = out[first * rows.shape[1] // BLOCK:][:len(blocks)]
        to[:, :2], to[:, 2:] = scale.astype(np.float16).view(np.uint8), blocks.astype(np.int8).view(np.uint8)
    return out.reshape(-1).data


class _Rows:
    """K and V of a payload's layers in the form of a template, in two buffers that are used in turn."""

    def __init__(self, payload, template, pairs):
        self.payload, self.template, self.pairs = payload, template, pairs
        shape = payload.shape
        self.n, self.dim, self.columns = shape.n_rows, shape.head_dim, shape.n_heads * shape.head_dim
        most = max(TYPES.get(head[0], TYPES[0])[1] for head in template.k + template.v)
        self.buffers = [bytearray(most * self.n * self.columns) for _ in range(2)]

    def __iter__(self):
        """For each layer's K, then V, the packed head and the bytes that follow; the next are read meanwhile."""
        todo = [(what, layer) for what in "kv" for layer in range(len(self.template.k))]
        with concurrent.futures.ThreadPoolExecutor(1) as reader:
            next_one = reader.submit(self._get, *todo[0])
            for ahead in todo[1:] + [None]:
                now = next_one.result()
                next_one = ahead and reader.submit(self._get, *ahead)
                yield now

    def _get(self, what, layer):
        head = (self.template.k if what == "k" else self.template.v)[layer]
        transposed = what == "v" and self.template.transposed
        kind, size = TYPES.get(head[0], ("f32", 4))
        self.buffers.reverse()
        into = memoryview(self.buffers[0])[:size * self.n * self.columns]
        strides = (self.dim * self.n, 1, self.n) if transposed else (self.dim, self.columns, 1)
        self.payload.rows(layer, what, into, type=kind, strides=strides, pairs=what == "k" and self.pairs)
        packed = struct.pack("<iII" if transposed else "<iQ", *head)
        if head[0] != Q8_0:
            return packed, into
        import numpy as np
        rotation = self.template.rot_k if what == "k" else self.template.rot_v
        return packed, _q8_0(np.frombuffer(into, "<f4").reshape(self.n, self.columns), rotation)


def _check(payload, template):
    shape, t = payload.shape, template
    if not shape.n_rows:
        raise Refused("heads or layers keep different numbers of tokens, or none: a slot has the same cells for all")
    columns = shape.n_heads * shape.head_dim
    if len(t.k) != shape.n_layers:
        raise Refused(f"the payload has {shape.n_layers} layers, the slot {len(t.k)}")
    for head in t.k + t.v:
        quantised = head[0] == Q8_0
        if quantised and t.version < 4:
            raise Refused("a slot file of version 3 does not say whether its q8_0 rows are rotated")
        if quantised and (len(head) > 2 or columns % BLOCK):
            raise Refused("q8_0 rows are not transposed, and have whole blocks of 32")
        if not quantised and (t.rot_k or t.rot_v) and Q8_0 not in (t.k[0][0], t.v[0][0]):
            raise Refused("rows that are not quantised are rotated: not known")
        size = columns // BLOCK * BLOCK_BYTES if quantised else columns * TYPES[head[0]][1]
        if head[1:] != ((TYPES[head[0]][1], columns) if len(head) > 2 else (size,)):
            raise Refused(f"the payload has rows of {columns} columns, the slot others")
    for rotation in (t.rot_k, t.rot_v):
        if rotation and (rotation & (rotation - 1) or rotation < BLOCK or shape.head_dim % rotation):
            raise Refused(f"a rotation of {rotation} of {shape.head_dim} columns is not known")


def write(path, payload, tokens, template, pairs, sync=True):
    """Writes a payload as a slot file; `tokens`: its int32 ids. Returns the file's size. sync: it also survives a crash of
    the machine. What a slot cannot hold is Refused."""
    _check(payload, template)
    t, n, n_tokens = template, payload.shape.n_rows, payload.shape.n_tokens
    ids = array.array("i", tokens[:n_tokens])
    if len(ids) < n_tokens:
        raise Refused(f"{len(ids)} tokens were given, the payload has {n_tokens}")
    part = f"{path}.part"
    try:
        # a slot is a user's prompt; a new file, where others could have put a link
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            mark, end = (struct.pack("<iII", MARK, FORM, n_tokens), bytes(4)) if t.marked else (b"", b"")
            file.write(struct.pack("<III", MAGIC, t.version, n_tokens + (4 if t.marked else 0)) + mark)
            file.write(ids.tobytes() + end)
            file.write(struct.pack("<II", t.n_streams, n) + _cells(n, n_tokens))
            file.write(struct.pack("<II", t.transposed, len(t.k)))
            file.write(struct.pack("<II", t.rot_k, t.rot_v) if t.version > 3 else b"")
            for head, data in _Rows(payload, template, pairs):
                file.write(head)
                file.write(data)
            file.write(bytes(4 * (t.n_streams - 1)))
            file.flush()
            if sync:
                os.fsync(file.fileno())
        back = Template(part)
        if vars(back) != dict(vars(t), n_tokens=n_tokens, n_cells=n):
            raise OSError(f"'{part}' was not written as it should be")
        os.replace(part, path)
    except BaseException:
        if os.path.exists(part):
            os.unlink(part)
        raise
    return os.path.getsize(path)


def _cells(n, n_tokens):
    """Positions serve the causal mask alone: keys are rotated already. If tokens were dropped, all cells are at the last
    position: then the server takes them for prompts that begin with all of the tokens, and computes all others."""
    cells = array.array("i", bytes(CELL * n))
    cells[0::3] = array.array("i", range(n_tokens) if n == n_tokens else [n_tokens - 1] * n)
    cells[1::3] = array.array("i", [1] * n)
    return cells.tobytes()


def main():
    parser = argparse.ArgumentParser(prog="python -m evp.slot", description="Writes the longest placed prefix of the token "
                                     "ids on standard input as a slot file of llama-server.")
    parser.add_argument("--manifest", required=True, help="the manifest of the load")
    parser.add_argument("--namespace", help="of the load")
    parser.add_argument("--model", required=True, help="the server's GGUF file")
    parser.add_argument("--model-name", help="its name, if the payloads' model has another than the GGUF file")
    parser.add_argument("--model-digest", help="the payloads' model_digest, in place of the name")
    parser.add_argument("--template", required=True, help="a slot file that the same server saved")
    parser.add_argument("--output", required=True, help="the slot file to write")
    at = parser.parse_args()
    try:
        tokens = [int(word) for word in sys.stdin.read().split()]
        template, model = Template(at.template), evp.gguf.read(at.model)
        with evp.open(at.manifest, name_space=at.namespace) as store:
            found = store.find(tokens)
            if not found:
                raise Refused(f"no prefix of the {len(tokens)} tokens is placed")
            with store.payload(found) as payload:
                reason = model.differs(payload, at.model_name, at.model_digest)
                if reason:
                    raise Refused(reason)
                size = write(at.output, payload, tokens, template, model.pairs)
                print(f"{at.output}: {payload.shape.n_rows} cells of {found.n_tokens} tokens as {found.config}, {size} bytes")
    except (ValueError, OSError, evp.Error) as e:
        print(f"evp.slot: {e}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
