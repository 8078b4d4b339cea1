"""redis_fetch.py MANIFEST LETTER... - what libevicpress finds of the contexts that begin with a letter, whole and in parts.

A fetched payload is compared with the one in pay/ of the same size and tokens, so a wrong byte is told.
"""
import glob, sys

import evp

packed = [open(path, "rb").read() for path in glob.glob("pay/*")]


def parts(payload, whole):
    """Every tensor, whole and its second row, against the payload's bytes."""
    for t in payload:
        assert payload.fetch(t.name) == whole[t.offset:t.offset + t.size], t.name
        if len(t.shape) > 1 and t.shape[1] > 1 and t.shape[0]:
            row = t.size // t.shape[0] // t.shape[1]
            assert payload.fetch(t.name, heads=(0, 1), rows=(1, 2)) == whole[t.offset + row:t.offset + 2 * row], t.name


def look(store, letter):
    found = store.find([1000 * ord(letter) + i for i in range(40000)])
    if not found:
        return f"{letter}: nothing"
    try:
        whole = bytes(store.fetch(found))
        said = "right" if whole in packed else "WRONG"
        with store.payload(found) as payload:
            parts(payload, whole)
        return f"{letter}: {found.n_tokens} tokens on {found.tier}, {found.config}, {said}"
    except evp.Error as e:
        return f"{letter}: {type(e).__name__} {e}"


with evp.open(sys.argv[1]) as store:
    for letter in sys.argv[2:]:
        print(look(store, letter))
