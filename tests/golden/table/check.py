"""check.py COPY DOC WORK - called by check: what h5py and docs/formats/table.md say of our tables, and we of h5py's."""
import re, subprocess, sys
import h5py, numpy as np

copy, doc, work = sys.argv[1:]
failed = False
text = h5py.string_dtype("utf-8")
TYPES = dict(string=None, int64=np.int64, int32=np.int32, float64=np.float64, float32=np.float32)


def verdict(good, name, why=""):
    global failed
    failed |= not good
    print(f"ok table: {name}" if good else f"FAIL table: {name}: {why}")


def run(source, target="out.h5"):
    r = subprocess.run([copy, source, f"{work}/{target}"], capture_output=True, text=True)
    return r.returncode, r.stderr


def documented():
    """path -> (shape letters, type) from the table in the document"""
    rows = {}
    for line in open(doc):
        m = re.match(r"\| (`/.*?) \| ([CVQTP, ]+) \| (\w+) \|", line)
        for path in re.findall(r"`(/[a-z_0-9/]+)`", m.group(1)) if m else []:
            rows[path] = (m.group(2).replace(", ", ""), m.group(3))
    return rows


def contents(path):
    with h5py.File(path) as f:
        found = {}
        f.visititems(lambda name, o: found.update({"/" + name: o[()]}) if isinstance(o, h5py.Dataset) else None)
        return found, dict(f.attrs)


def same(a, b):
    return a.keys() == b.keys() and all(
        np.array_equal(a[k], b[k], equal_nan=a[k].dtype.kind == "f") and a[k].dtype == b[k].dtype for k in a)


# Ours, seen by h5py.
status, said = run("make", "made.h5")
verdict(status == 0, "written", said)
rows, wrong = documented(), []
with h5py.File(f"{work}/made.h5") as f:
    axis = dict(C=2, V=4, Q=3, T=3, P=3)
    for path, (shape, kind) in rows.items():
        d = f[path]
        if d.shape != tuple(axis[letter] for letter in shape):
            wrong.append(f"{path} has shape {d.shape}")
        is_text = h5py.check_string_dtype(d.dtype)
        if kind == "string":
            if not is_text or is_text.encoding != "utf-8" or is_text.length is not None:
                wrong.append(f"{path} is {d.dtype}")
        elif d.dtype != np.dtype(TYPES[kind]).newbyteorder("<"):
            wrong.append(f"{path} is {d.dtype}")
        elif not d.fletcher32:
            wrong.append(f"{path} has no checksums")
    names = []
    f.visititems(lambda name, o: names.append("/" + name) if isinstance(o, h5py.Dataset) else None)
    if set(names) != set(rows):
        wrong.append(f"documented or written alone: {set(names) ^ set(rows)}")
    verdict(len(rows) == 67 and not wrong, "every dataset is as documented", "; ".join(wrong) or f"{len(rows)} rows")
    ids = f["/contexts/id"].asstr()[:].tolist()
    verdict(ids == ["qasper/1", "na\u00efve \u20ac"] and f["/answers/text"].asstr()[0, 1] == "because \U0001f600", "UTF-8")
    verdict(f["/cells/bytes"][1, 3] == -1 and np.isnan(f["/cells/size_frac"][1, 3]) and f["/answers/n_tokens"][0, 3] == -1
            and np.isnan(f["/quality/test"][0, 0]) and f["/contexts/dataset"].asstr()[1] == "", "absent values")
    verdict(f.attrs["evp"] == "table" and f.attrs["version"] == 2 and f.attrs["max_new_tokens"] == 32 and f.attrs["temperature"] == 0.7
            and f.attrs["model"] == "m" and f.attrs["lineage"] == '{"tool":"copy"}', "attributes")
status, said = run(f"{work}/made.h5", "again.h5")
verdict(status == 0 and open(f"{work}/made.h5", "rb").read() == open(f"{work}/again.h5", "rb").read(),
        "read and written again: the same bytes", said)

# h5py's, seen by us: the same content in every way h5py stores it.
data, attrs = contents(f"{work}/made.h5")


def write(path, change=None, libver=None, **how):
    with h5py.File(path, "w", libver=libver) as f:
        for k, v in attrs.items():
            f.attrs[k] = v
        for name, value in data.items():
            is_text = value.dtype.kind == "O"
            f.create_dataset(name, data=value, dtype=text if is_text else None, **({} if is_text else how))
        if change:
            change(f)
    return path


for label, libver, how in [("defaults", None, {}), ("gzip", None, dict(compression="gzip", shuffle=True)),
                           ("fletcher32", "earliest", dict(fletcher32=True)), ("latest format", "latest", {})]:
    status, said = run(write(f"{work}/h5py.h5", libver=libver, **how))
    verdict(status == 0 and same(contents(f"{work}/out.h5")[0], data), f"h5py's with {label}", said)


def replace(name, value, **how):
    def change(f):
        del f[name]
        f.create_dataset(name, data=value, **how)
    return change


def remove(name):
    return lambda f: f.__delitem__(name)


def soft(f):
    f.move("/cells/bytes", "/cells/other")
    f["/cells/bytes"] = h5py.SoftLink("/cells/other")


def outside(f):
    del f["/cells/bytes"]
    f["/cells/bytes"] = h5py.ExternalLink("made.h5", "/cells/bytes")


def external(f):
    del f["/cells/bytes"]
    f.create_dataset("/cells/bytes", (2, 4), np.int64, external=[("/etc/passwd", 0, 64)])


def virtual(f):
    del f["/cells/bytes"]
    layout = h5py.VirtualLayout((2, 4), np.int64)
    layout[:] = h5py.VirtualSource("made.h5", "/cells/bytes", (2, 4))
    f.create_virtual_dataset("/cells/bytes", layout)


def vast(n):
    def change(f):
        del f["/contexts/id"]
        f.create_dataset("/contexts/id", (n,), text, chunks=(1024,))
    return change


def chunked(n):
    """one dimension in chunks of n numbers of 8 bytes"""
    return replace("/contexts/n_tokens", data["/contexts/n_tokens"], maxshape=(None,), chunks=(n,), compression="gzip")


# What a file may lack, and what it reads as.
status, said = run(write(f"{work}/h5py.h5", remove("/contexts/question_s")))
lacks = contents(f"{work}/out.h5")[0] if status == 0 else {}
verdict(status == 0 and (lacks["/contexts/question_s"] == 0).all(), "without question_s it reads as 0", said)
LACK = ["/contexts/prefill_n", "/contexts/prefill_spread", "/contexts/question_spread", "/contexts/unrelated", "/contexts/same_meaning", "/sampled/text", "/sampled/n_tokens", "/sampled/similarity", "/gold/answers", "/gold/score", "/gold/mean", "/answers/facts_kept", "/answers/token_f1", "/facts/train", "/facts/test", "/token_f1/train", "/token_f1/test", "/contexts/prefill_flop", "/contexts/profiled_at", "/contexts/prefix_digests", "/questions/origin", "/questions/asked_at", "/answers/log_likelihood", "/cells/decode_1_s", "/cells/decode_8_s", "/cells/decode_32_s", "/quality/train_std", "/quality/train_n",
        "/quality/test_std", "/quality/test_n"]


def is_absent(a):
    return np.isnan(a).all() if a.dtype.kind == "f" else (a == (b"" if a.dtype.kind == "O" else -1)).all()


for name in [n for n in LACK if n != "/sampled/n_tokens"]:  # it goes with the text, below
    status, said = run(write(f"{work}/h5py.h5", remove(name)))
    verdict(status == 0 and is_absent(contents(f"{work}/out.h5")[0][name]), f"without {name}", said)
status, said = run(write(f"{work}/h5py.h5", remove("/sampled")))
lacks = contents(f"{work}/out.h5")[0] if status == 0 else {}
verdict(status == 0 and all(is_absent(lacks[name]) for name in lacks if name.startswith("/sampled")), "without /sampled", said)
for part in (["/answers/similarity", "/quality", "/gold/score", "/gold/mean", "/answers/facts_kept", "/answers/token_f1", "/facts", "/token_f1", "/contexts/unrelated", "/contexts/same_meaning", "/sampled/similarity", "/tiers", "/utility"], ["/predicted", "/belief", "/cells/asked"], ["/tiers", "/utility"], ["/prefill_curve"], ["/cells/bytes_read"]):
    status, said = run(write(f"{work}/h5py.h5", lambda f: [remove(name)(f) for name in part]))
    lacks = contents(f"{work}/out.h5")[0] if status == 0 else {}
    verdict(status == 0 and not any(name.startswith(tuple(part)) for name in lacks), f"without {', '.join(part)}", said)
for name in ["model", "model_digest", "backend", "dtype", "chat_digest", "embedder_digest", "measure", "lineage", "max_new_tokens", "temperature"]:
    status, said = run(write(f"{work}/h5py.h5", lambda f: f.attrs.__delitem__(name)))
    is_now = contents(f"{work}/out.h5")[1][name] if status == 0 else None
    verdict(status == 0 and is_now == {"max_new_tokens": -1, "temperature": 0}.get(name, ""), f"without attribute {name}", said)
status, said = run(write(f"{work}/h5py.h5", replace("/predicted/sd", data["/predicted/sd"].astype(np.float64))))
verdict(status == 0 and same(contents(f"{work}/out.h5")[0], data), "float64 for float32 is rounded", said)
for n in (2**25 - 1, 2**25):
    status, said = run(write(f"{work}/h5py.h5", chunked(n)))
    verdict(status == 0, f"chunks of {n} numbers", said)


def attribute(name, value):
    return lambda f: f.attrs.__setitem__(name, value)


cells, bytes_ = data["/cells/size_frac"], data["/cells/bytes"]
for label, change in {
    "a dataset missing": remove("/cells/bytes"),
    "a group missing": remove("/cells"),
    "one dataset of evp-score alone": remove("/quality"),
    "the wrong shape": replace("/cells/bytes", bytes_[:, :3]),
    "the wrong number of dimensions": replace("/cells/bytes", bytes_.ravel()),
    "another integer type": replace("/cells/bytes", bytes_.astype(np.int32)),
    "unsigned integers": replace("/cells/bytes", bytes_.astype(np.uint64)),
    "integers for reals": replace("/cells/size_frac", np.ones((2, 4), np.int64)),
    "strings of fixed length": replace("/configs/name", np.array([b"none", b"b", b"c", b"d"])),
    "a number for a string": replace("/configs/name", np.arange(4)),
    "a config twice": replace("/configs/name", ["none", "a", "a", "b"], dtype=text),
    "no reference": replace("/configs/name", ["a", "b", "c", "d"], dtype=text),
    "text that is not UTF-8": replace("/configs/name", np.array([b"none", b"\xff", b"c", b"d"], object), dtype=text),
    "a question about no context": replace("/questions/context", np.array([0, 1, 2])),
    "a fraction without bytes": replace("/cells/size_frac", np.ones((2, 4))),
    "bytes without a fraction": replace("/cells/size_frac", cells * np.nan),
    "an infinite time": replace("/contexts/prefill_s", np.array([1, np.inf])),
    "a quality below 0": replace("/quality/train", data["/quality/train"] - 1.5),
    "a quality above 1": replace("/quality/train", data["/quality/train"] * 1.5),
    "a soft link": soft,
    "a link to another file": outside,
    "data in another file": external,
    "a virtual dataset": virtual,
    "more data than the file holds": vast(2**31 - 2),
    "rows that an int cannot count": vast(2**31),
    "as many rows as an int can count": vast(2**31 - 1),
    "chunks above 256 MiB": chunked(2**25 + 1),
    "a filter we do not take": replace("/cells/bytes", bytes_, scaleoffset=0),
    "a group in a dataset's place": lambda f: (f.__delitem__("/cells/bytes"), f.create_group("/cells/bytes")),
    "a version to come": attribute("version", 3),
    "version 1, which no release wrote": attribute("version", 1),
    "one dataset of the prefill curves alone": remove("/prefill_curve/seconds"),
    "a point of no context": replace("/prefill_curve/context", np.array([0, 1, 2])),
    "a deviation below 0": replace("/quality/train_std", data["/quality/train_std"] - 1),
    "a chain of digests that is cut": replace("/contexts/prefix_digests", ["ab" * 31, ""], dtype=text),
    "a prediction above 1": replace("/predicted/quality", data["/predicted/quality"] * 3),
    "right answers that are no list": replace("/gold/answers", ["a", "", ""], dtype=text),
    "facts above 1": replace("/answers/facts_kept", data["/answers/facts_kept"] + 2),
    "a mean of facts below 0": replace("/facts/test", data["/facts/test"] - 1),
    "predicted facts above 1": replace("/predicted/facts", data["/predicted/facts"] + 1),
    "a gold score above 1": replace("/gold/score", data["/gold/score"] + 1),
    "a prefill that was measured 0 times": replace("/contexts/prefill_n", np.array([0, 2])),
    "more bytes read than kept": replace("/cells/bytes_read", bytes_ + 1),
    "bytes read of what was not run": replace("/cells/bytes_read", np.zeros((2, 4), np.int64)),
    "bytes read in the wrong shape": replace("/cells/bytes_read", bytes_[:, :3]),
    "bytes read that are reals": replace("/cells/bytes_read", cells),
    "a token that took no time": replace("/cells/decode_8_s", data["/cells/decode_8_s"] * 0),
    "a spread below 0": replace("/contexts/question_spread", np.array([-1., 0])),
    "a scale below 0": replace("/contexts/unrelated", data["/contexts/unrelated"] - 1),
    "a doubt below 0": replace("/predicted/sd", data["/predicted/sd"] - 1),
    "one dataset of predictions alone": remove("/belief/mean"),
    "a variance below 0": replace("/belief/between", data["/belief/between"] - 1),
    "another kind": attribute("evp", "profile"),
    "a temperature below 0": attribute("temperature", -0.5),
    "a temperature that is text": attribute("temperature", "warm"),
    "a sampled answer without tokens": replace("/sampled/n_tokens", np.array([-1, 0, 0], np.int32)),
    "a list for a name": attribute("evp", ["table", "table"]),
    "no contexts": lambda f: [replace(k, data[k][:0], dtype=text if data[k].dtype.kind == "O" else None)(f)
                              for k in rows if "C" == rows[k][0][0]],
}.items():
    status, said = run(write(f"{work}/bad.h5", change))
    verdict(status == 3 and said.count("\n") == 1, f"refuses {label}", f"status {status}: {said}")
open(f"{work}/bad.h5", "wb").write(b"{}\n")
status, said = run(f"{work}/bad.h5")
verdict(status == 3, "refuses a file of another format", said)
status, said = run(f"{work}/none.h5")
verdict(status == 1, "a file that is not there is no bad file", said)
sys.exit(failed)
