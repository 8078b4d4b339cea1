"""python_use.py MANIFEST - what a serving stack does with the module, and what it must not be able to do."""
import array, ctypes, multiprocessing, os, pickle, signal, sys, threading

import evp


def ids(letter, n):
    return [1000 * ord(letter) + i for i in range(n)]


def refused(what, *arguments, **named):
    try:
        what(*arguments, **named)
        return "taken"
    except (evp.Error, ValueError, TypeError, BufferError) as e:
        return type(e).__name__


def buffers(store):
    found = store.find(ids("a", 150))
    whole = store.fetch(found)
    assert bytes(whole[8:9]) == b"{" and len(whole) == found.size
    for tokens in array.array("i", ids("a", 150)), tuple(ids("a", 150)), memoryview(array.array("i", ids("a", 150))), \
            array.array("q", ids("a", 150)):
        assert store.find(tokens).checksum == found.checksum
    into = bytearray(found.size + 10)
    assert store.fetch(found, into=into) == whole and into[found.size:] == bytes(10)
    try:
        import numpy
        assert store.find(numpy.array(ids("a", 150), dtype=numpy.int32)).size == found.size
        assert store.find(numpy.array(ids("a", 150))).size == found.size  # int64
        into = numpy.zeros((2, found.size), dtype=numpy.uint8)
        assert store.fetch(found, into=into[1]) == whole and not into[0].any()
    except ImportError:
        pass
    print("buffers:", refused(store.fetch, found, into=bytes(found.size)), refused(store.fetch, found, into=bytearray(3)),
          refused(store.find, "text"), store.find([]), store.find(ids("z", 9)))
    assert pickle.loads(pickle.dumps(found)).checksum == found.checksum


def parts(store):
    found = store.find(ids("a", 150))
    whole = store.fetch(found)
    with store.payload(found) as payload:
        for t in payload:
            assert payload.fetch(t.name) == whole[t.offset:t.offset + t.size] == payload.map(t.name)
        t = payload["layers.0.k"]
        row = t.size // t.shape[0] // t.shape[1]
        assert payload.fetch(t.name, heads=(0, 1), rows=(7, 9)) == whole[t.offset + 7 * row:t.offset + 9 * row]
        assert os.pread(payload.fileno(), 8, 0) == whole[:8]
        assert payload.text("config") == found.config and payload.text("producer") is None
        view = payload.map()
        print("parts:", refused(payload.fetch, "layers.9.k"), refused(payload.fetch, "layers.0.k", heads=(0, 9)),
              refused(payload.fetch, "layers.0.k", heads=(1, 1)))
    assert view == whole  # the map outlives the payload
    print("closed:", refused(payload.fetch, "layers.0.k"))


def counts(store):
    before, *_ = store.stats()
    store.fetch(store.find(ids("a", 150)))
    store.find(ids("z", 9))
    refused(store.remove, "nobody")
    after, *others = store.stats()
    print("counts:", after.finds - before.finds, after.tokens_asked - before.tokens_asked, after.hits - before.hits,
          after.tokens_hit - before.tokens_hit, after.reads - before.reads, after.errors[-7] - before.errors.get(-7, 0),
          sorted({(s.tier, s.config) for s in others}), sum(s.hits for s in others if s.config) == after.hits)
    store.write_metrics("python.prom")
    print("metrics:", refused(store.write_metrics, "nowhere/x.prom"),
          f'evp_finds_total{{process="python"}} {after.finds}\n' in open("python.prom").read())


def look(letter):
    found = opened.find(ids(letter, 300))
    return letter, found.n_tokens if found else 0, len(opened.fetch(found)) if found else 0


def forks(store):
    stop = threading.Event()

    def hammer():
        while not stop.is_set():
            store.fetch(store.find(ids("b", 300)))
            store.refresh()

    threads = [threading.Thread(target=hammer) for _ in range(3)]
    for thread in threads:
        thread.start()
    with multiprocessing.get_context("fork").Pool(3) as pool:
        print("pool:", pool.map(look, "abcz"))
    good = 0
    for _ in range(30):
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            os._exit(0 if look("b")[2] and not store.refresh() else 1)
        good += os.waitpid(child, 0)[1] == 0
    stop.set()
    for thread in threads:
        thread.join()
    print("forks:", good)


def rows_of(payload):
    shape = payload.shape
    rows = [bytearray(shape.n_heads * shape.n_rows * shape.head_dim * 2) for _ in range(2 * shape.n_layers)]
    for i, into in enumerate(rows):
        payload.rows(i // 2, "kv"[i % 2], into)
    return rows


def encodes(store):
    """Rows become a payload, and come out of it again."""
    tokens = ids("c", 90)
    with store.payload(store.find(tokens)) as payload:
        shape, rows = payload.shape, rows_of(payload)
        texts = {name: payload.text(name) for name in ("model_digest", "model_name", "cache")}
    for row in rows:
        row[1::2] = bytes(byte & 0xbf for byte in row[1::2])  # no infinite numbers
    at = [ctypes.addressof(ctypes.c_char.from_buffer(row)) for row in rows]
    shape = shape.n_layers, shape.n_heads, shape.head_dim
    store.put("c1", "ssd", evp.encode("none", tokens, at, shape, "bf16", **texts))
    with store.payload(store.find(tokens)) as payload:
        print("encoded:", rows_of(payload) == rows, payload.text("cache") == texts["cache"],
              refused(evp.encode, "snapkv:drop=0.5", tokens, at, shape, "bf16", **texts),
              refused(evp.encode, "none", tokens, at[1:], shape, "bf16", **texts))


with evp.open(sys.argv[1]) as opened:
    print(opened.tiers())
    buffers(opened)
    parts(opened)
    counts(opened)
    forks(opened)
    encodes(opened)
    print("moves:", opened.find(ids("a", 300)).tier, opened.move("a1", "ssd"), opened.find(ids("a", 300)).tier,
          refused(opened.move, "nobody", "ssd"), refused(opened.put, "a1", "ssd", b"{}"))
print(refused(opened.find, [1]), refused(evp.open, "absent.jsonl"), refused(evp.open_plan, sys.argv[1]))
