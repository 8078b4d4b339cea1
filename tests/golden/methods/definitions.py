"""What cam and arkv make of the heads of a layer, in NumPy, after the authors' code. q (G, W, H/G, K), k and v (G, T, K)
of one layer."""
import numpy as np


def attention(q, k):
    """(G, H/G, W, T): softmax of the last W tokens' queries over the keys that they see."""
    s = np.einsum("gwjc,gtc->gjwt", q.astype(float), k.astype(float)) / np.sqrt(k.shape[-1])
    W, T = s.shape[2:]
    s[:, :, np.arange(T) > T - W + np.arange(W)[:, None]] = -np.inf
    a = np.exp(s - s.max(-1, keepdims=True))
    return a / a.sum(-1, keepdims=True)


def cam(q, k, v, kept, m=32):
    """The values of the positions `kept` (ascending, of each head). Of each dropped token, as of the one that leaves the
    window in slicev() of CaM's kv_cache_cam.py, with the mean of what it draws."""
    made = []
    for a, values, at in zip(attention(q, k).mean((1, 2)), v.astype(float), kept):
        x = values.copy()
        for i in np.setdiff1d(np.arange(len(a)), at):
            following = at[at > i][:m]
            with np.errstate(all="ignore"):
                p = np.nan_to_num(a[i] / a[following].mean() if len(following) else np.nan, nan=0).clip(0, 1)
            x[following] += values[i] * p / m
        made.append(x[at])
    return made


TAU, GAMMA = (7.774380648611771, 5.407015096778621, 5.527702582901318), 263.8108280337562  # model2hypers.json


def moments(x):
    """Central moments over queries of (H, W, P)."""
    d = x - x.mean(-2, keepdims=True)
    return (d ** 2).mean(-2), (d ** 4).mean(-2)


def arkv_scores(q, k):
    """(G, P): calculate_heavy_hitter() of the tokens before the window."""
    a = attention(q, k)
    W, T = a.shape[2:]
    x = (a.mean(2) + GAMMA * a.var(2, ddof=1))[:, :, :T - W]
    padded = np.pad(x, ((0, 0), (0, 0), (2, 2)))
    return sum(padded[:, :, i:i + T - W] for i in range(5)).mean(1) / 5


def arkv_oq(q, k, stats="code"):
    """A layer's preference: disp_var_kurt_preference(), or with the statistics of each query over the keys."""
    a = attention(q, k)
    W, T = a.shape[2:]
    x = a[..., :T - W].reshape(-1, W, T - W)
    if stats == "code":
        m2, m4 = moments(x)
        parts = -(x * np.log(x + 1e-10)).sum(), x.var(-2, ddof=1).sum(), (m4 / np.maximum(m2, 1e-8) ** 2).sum()
    else:
        p = x / x.sum(-1, keepdims=True)
        m2, m4 = (((p - p.mean(-1, keepdims=True)) ** e).mean(-1) for e in (2, 4))
        parts = -(p * np.log(np.where(p > 0, p, 1))).sum(), m2.sum(), (m4 / m2 ** 2).sum()
    return np.prod([part ** (1 / tau) for part, tau in zip(parts, TAU)])


def arkv_states(scores, oq, n_keep, W):
    """[layer][head] positions in 8 bits, and whole; scores and oq of each layer."""
    states = []
    for layer, own in zip(scores, oq):
        n_whole = round(own / max(oq) * (n_keep - W))
        order = np.argsort(-layer, axis=-1, kind="stable")
        window = np.arange(layer.shape[1], layer.shape[1] + W)
        states.append([(np.sort(o[n_whole:n_keep - W]), np.sort(np.concatenate([o[:n_whole], window]))) for o in order])
    return states
