"""What cam, merge_cos and arkv make of a real context: payloads, and the same numbers before they are rounded."""
import numpy as np
import torch
import definitions, packing
from kvpress import KnormPress, MergingPress

MERGED = ["knorm:drop=0.5+merge_cos", "snapkv:drop=0.9+merge_cos", "snapkv:drop=0.5+cam", "knorm:drop=0.9+cam"]
SHARED = ["arkv:drop=0.5", "arkv:drop=0.9", "arkv:drop=0.5:stats=paper"]
CONFIGS = MERGED + SHARED
LAYERS = 0, 15, 29  # for heads()
ULP = 1 / 256  # of bf16, relative


def bf16(x):
    return x.bfloat16().float().numpy()


def layer_of(oracle, layer):
    """Queries, and keys and values as payloads hold them."""
    keys, values = oracle.full[layer]
    return oracle.every.queries[layer].numpy(), bf16(keys), bf16(values)


def made_of(config, q, k, v, kept):
    """[head] values that a merging method makes of the positions `kept`."""
    if config.endswith("+cam"):
        return definitions.cam(q, k, v, kept)
    merge = MergingPress(KnormPress(0.5)).merge
    return [merge(*(torch.tensor(x[None, None]) for x in (*one, at)))[1][0, 0].numpy()[at] for *one, at in zip(k, v, kept)]


def rows(tensors, layer, side):
    _, shape, data = tensors[f"layers.{layer}.{side}"]
    return (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)


def check_payloads(oracle, ours, check):
    """A value's error is that of its rounding to bf16; a token whose two most similar keys are as near may go to the
    other, which changes two rows."""
    for config in MERGED:
        kept, away, count = packing.kept_positions(ours[config]), 0, 0
        for layer in range(packing.LAYERS):
            q, k, v = layer_of(oracle, layer)
            want = made_of(config, q, k, v, [np.array(at) for at in kept[layer]])
            off = np.abs(rows(ours[config], layer, "v") - np.array(want)) > 2 * ULP * np.abs(want).max(-1, keepdims=True)
            away, count = away + int(off.any(-1).sum()), count + off.shape[0] * off.shape[1]
        check(away < 1e-3 * count, f"{config}: {count - away} of {count} rows of values within bf16's rounding")


def numbers_of(oracle):
    """The layers LAYERS for packing.heads(), and the sizes."""
    q, k, v = (np.stack(x) for x in zip(*(layer_of(oracle, layer) for layer in LAYERS)))
    L, G, W, group, K = q.shape
    return (L, G * group, G, K, k.shape[2], W), q, k, v


def check_numbers(oracle, build, check):
    size, q, k, v = numbers_of(oracle)
    numbers = [x.ravel().tolist() for x in (k, v, q)]
    for config in MERGED:
        made = packing.heads(build, config, size, numbers)
        worst, G = 0, size[2]
        for layer in range(size[0]):
            ours = made[layer * G:layer * G + G]
            want = made_of(config, q[layer], k[layer], v[layer], [np.array(at) for at, _ in ours])
            worst = max(worst, max(float(np.abs(np.array(x).reshape(y.shape) - y).max() / np.abs(y).max())
                                   for (_, x), y in zip(ours, want)))
        check(worst < 1e-5, f"{config}: {len(LAYERS)} layers' values within {worst:.1e} of the largest")
    for config in SHARED:
        shares, scores, states = packing.arkv_heads(build, config, size, numbers)
        stats = "paper" if "paper" in config else "code"
        oq = [definitions.arkv_oq(q[l][:, -32:], k[l], stats) for l in range(size[0])]
        want = [head for l in range(size[0]) for head in definitions.arkv_scores(q[l][:, -32:], k[l])]
        off = max(float(np.abs(np.array(shares) * max(oq) / oq - 1).max()),
                  *(float(np.abs(np.array(x[:len(y)]) / y - 1).max()) for x, y in zip(scores, want)))
        check(off < 1e-5, f"{config}: {len(LAYERS)} layers' shares and scores within {off:.1e}")


def check_states(oracle, ours, check):
    """The rows that a payload has whole and in 8 bits are those of the model, but for tokens whose scores tie."""
    for config in SHARED:
        stats, layers, wrong, heads = "paper" if "paper" in config else "code", range(packing.LAYERS), 0, 0
        q, k, v = zip(*((oracle.every.queries[l].numpy()[:, -32:], *(x.numpy() for x in oracle.full[l])) for l in layers))
        n = packing.n_keep(k[0].shape[1], float(config.split("drop=")[1].split(":")[0]))
        oq = [definitions.arkv_oq(q[l], k[l], stats) for l in layers]
        states = definitions.arkv_states([definitions.arkv_scores(q[l], k[l]) for l in layers], oq, n, 32)
        for l in layers:
            whole = rows(ours[config], l, "k")
            for g, (packed, full) in enumerate(states[l]):
                heads += 1
                wrong += whole.shape[1] != len(full) or not np.allclose(whole[g], k[l][g][full], rtol=2 * ULP, atol=0.05)
        share = 1 - sum(rows(ours[config], l, "k").shape[1] for l in layers) / n / len(layers)
        check(wrong <= heads / 50, f"{config}: the whole rows of {heads - wrong} of {heads} heads equal; {share:.1%} are in "
                                   "8 bits")


def check_all(oracle, ours, build, check):
    check_payloads(oracle, ours, check)
    check_numbers(oracle, build, check)
    check_states(oracle, ours, check)
