"""slots.py FOLDER - evp.slot on the slot files that FOLDER/make had llama-server save: the rows of the one in f32, written
in the form of each other, are that file to the byte."""
import array, os, random, resource, struct, sys
from types import SimpleNamespace

import evp.slot

FOLDER, COLUMNS, N = sys.argv[1], 64, 5
TOKENS = [50, 60, 70, 80, 90]


def path(form):
    return f"{FOLDER}/{form}.bin"


def read(form):
    with open(path(form), "rb") as f:
        return f.read()


def bf16(x):
    word, = struct.unpack("<I", struct.pack("<f", x))
    return (word + 0x7fff + (word >> 16 & 1)) >> 16


class Payload:
    """The rows of the slot in f32, as a payload's: one layer, one head. drop: all but the last so many."""

    def __init__(self, **more):
        self.shape = SimpleNamespace(**{**dict(n_layers=1, n_heads=1, head_dim=COLUMNS, n_tokens=N, n_rows=N), **more})
        data, size = read("f32"), 4 * N * COLUMNS
        self.data = {"v": array.array("f", data[-size - 4:-4]), "k": array.array("f", data[-2 * size - 16:-size - 16])}

    def rows(self, layer, side, into, type, strides, pairs):
        to, (_, row, column) = memoryview(into).cast({"f32": "f"}.get(type, "H")), strides
        convert = {"f32": float, "bf16": bf16, "f16": lambda x: struct.unpack("<H", struct.pack("<e", x))[0]}[type]
        for i in range(self.shape.n_rows):
            for j in range(COLUMNS):
                to[i * row + j * column] = convert(self.data[side][i * COLUMNS + j])


def write(template, tokens=TOKENS, **more):
    evp.slot.write("out.bin", Payload(**more), tokens, template, False)
    with open("out.bin", "rb") as f:
        data = f.read()
    os.unlink("out.bin")
    return data


def refused(what, *arguments, **more):
    try:
        what(*arguments, **more)
        return "taken"
    except (ValueError, OSError) as e:
        return str(e).replace(FOLDER + "/", "")


def template(data):
    if os.path.exists("template.bin"):
        os.unlink("template.bin")  # some file systems flush a file that replaces another
    with open("template.bin", "wb") as f:
        f.write(data)
    return evp.slot.Template("template.bin")


def version_3(data):
    """The same without its rotation and with bare tokens, as older programs write it."""
    at = 12 + 4 * (N + 4) + 8 + 12 * N + 8
    return (data[:4] + struct.pack("<II", 3, N) + data[24:24 + 4 * N] + data[12 + 4 * (N + 4):at] + data[at + 8:])


def forms():
    for form in "f32", "f16", "bf16", "f16-transposed":
        assert write(evp.slot.Template(path(form))) == read(form), form
        old = version_3(read(form))
        assert write(template(old)) == old, form
    try:
        import numpy
    except ImportError:
        return
    assert write(evp.slot.Template(path("q8_0"))) == read("q8_0")


def dropped():
    t = evp.slot.Template(path("f16"))
    data = write(t, range(9), n_tokens=9)
    cells = struct.unpack_from("<15i", data, 12 + 4 * (9 + 4) + 8)
    print("cells of 5 of 9 tokens:", cells[:6], "...", template(data).n_cells)


def refusals():
    f16, q8_0 = evp.slot.Template(path("f16")), evp.slot.Template(path("q8_0"))
    print(refused(write, f16, n_rows=None))
    print(refused(write, f16, n_tokens=6))
    print(refused(write, f16, n_layers=2))
    print(refused(write, f16, head_dim=32))
    print(refused(write, template(version_3(read("q8_0")))))
    f16.k[0] = (1, 1 << 40)
    print(refused(write, f16))
    f16.k[0], f16.rot_k = (1, 2 * COLUMNS), 64
    print(refused(write, f16))
    q8_0.rot_k = 48
    print(refused(write, q8_0))
    print(refused(evp.slot.Template, path("nowhere")))


def damage():
    """Every cut, and random changes: a ValueError, or a template that can be written with or is refused."""
    random.seed(1)
    said = set()
    for form in "f16", "q8_0", "f16-transposed":
        good = read(form)
        for data in [good, version_3(good)]:
            for n in range(len(data)):
                assert refused(template, data[:n]) != "taken", (form, n)
            assert "left over" in refused(template, data + b"x")
        head = 12 + 4 * (N + 4) + 8 + 12 * N + 16 + 12
        for _ in range(3000):
            data = bytearray(good)
            for _ in range(random.randrange(1, 4)):
                data[random.randrange(head)] = random.choice((0, 1, 255, random.randrange(256)))
            try:
                said.add(refused(write, template(data)))
            except ValueError as e:
                said.add(str(e))
    print("damaged:", len(said) > 10, max(len(s) for s in said) < 120)


def full():
    """A file is whole or not there."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    print(refused(write, evp.slot.Template(path("f16"))), sorted(n for n in os.listdir(".") if n.startswith("out")))


forms()
dropped()
refusals()
damage()
full()
