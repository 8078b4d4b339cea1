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
