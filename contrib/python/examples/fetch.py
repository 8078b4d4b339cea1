"""fetch.py MANIFEST <TOKENS - which prefix of a prompt is already computed? Reads its cache layer by layer.

Reads token ids, one prompt per line. Prints the longest prefix on a tier, and for each layer the bytes of keys and
values read into one reused buffer, from which a serving engine would copy them to its device.
"""
import sys

import evp


def layers(payload):
    """The tensors of each layer, in order."""
    found = {}
    for tensor in payload:
        if tensor.name.startswith("layers."):
            found.setdefault(int(tensor.name.split(".")[1]), []).append(tensor)
    return [found[n] for n in sorted(found)]


def use(layer, tensor, view):
    """An engine would start a copy to its device here."""
    print(f"  layer {layer}: {tensor.name.split('.', 2)[2]} {tensor.type} {list(tensor.shape)}, {len(view)} bytes")


def fetch(store, found):
    with store.payload(found) as payload:
        buffer = bytearray(max(tensor.size for tensor in payload))
        for layer, tensors in enumerate(layers(payload)):
            for tensor in tensors:
                use(layer, tensor, payload.fetch(tensor.name, into=buffer))


def main():
    with evp.open(sys.argv[1]) as store:
        for line in sys.stdin:
            tokens = [int(word) for word in line.split()]
            found = store.find(tokens)
            print(f"{found.n_tokens if found else 0} of {len(tokens)} tokens are placed" +
                  (f" on {found.tier} as {found.config}" if found else ""))
            if found:
                fetch(store, found)


if __name__ == "__main__":
    main()
