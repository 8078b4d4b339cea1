"""reference.py - planner/belief.h in NumPy, written from the formulas."""
import numpy as np


def reference(mean, std, n):
    """The mean, between and within of every config, then the prediction and its deviation of every cell, as one list."""
    C, V = mean.shape
    m, b, s = (np.full(V, np.nan) for _ in range(3))
    m[0], b[0], s[0] = 1, 0, 0
    asked = (n > 0).any(0)
    asked[0] = False
    complete = (n[:, asked] > 0).all(1)
    if not complete.any():
        complete[:] = True

    def posterior(v, rows):
        noise = b[v] + s[v] / n[rows, v]
        w = np.divide(b[v], noise, out=np.ones(len(rows)), where=noise > 0)
        return np.minimum(m[v] + w * (mean[rows, v] - m[v]), 1), b[v] * (1 - w)

    # within: pooled, the pool of all configs as three
    squares = np.where(n > 1, (n - 1) * np.nan_to_num(std) ** 2, 0).sum(0) * asked
    freedom = np.where(n > 1, n - 1, 0).sum(0) * asked
    if freedom.sum():
        s[asked] = ((squares + 3 * squares.sum() / freedom.sum()) / (freedom + 3))[asked]

    for v in np.flatnonzero(asked):
        rows = np.flatnonzero(n[:, v] > 0)
        some = np.flatnonzero(complete & (n[:, v] > 0))
        y, per = mean[some, v], np.mean(1 / n[some, v])
        m[v] = y.mean()
        variance = y.var(ddof=1) if len(y) > 1 else 0
        if not freedom.sum():
            s[v] = variance / per if len(y) > 1 else 0.07
        b[v] = max(0, variance - s[v] * per)
        for _ in range(4):
            q, var = posterior(v, rows)
            m[v] = q.mean()
            b[v] = (var + (q - m[v]) ** 2).mean()
    if asked.any() and s[asked].sum() > 0:
        k = 10 / (9 + (n > 0).sum(0)[asked])
        b[asked] = np.minimum((1 - k) * b[asked] + k * b[asked].sum() * s[asked] / s[asked].sum(), 0.25)
    doubt = np.zeros(V)
    for v in np.flatnonzero(asked):
        rows = np.flatnonzero(n[:, v] > 0)
        b[v] = (5 * 0.1 * s[v] + len(rows) * b[v]) / (5 + len(rows))
        doubt[v] = 1 / ((1 / np.maximum(b[v] + s[v] / n[rows, v], 1e-12)).sum())
    quality, sd = np.tile(m, (C, 1)), np.tile(np.sqrt(b + doubt), (C, 1))
    for v in range(V):
        rows = np.flatnonzero(n[:, v] > 0)
        quality[rows, v], var = posterior(v, rows)
        w = np.divide(b[v], b[v] + s[v] / n[rows, v], out=np.ones(len(rows)), where=b[v] + s[v] > 0)
        sd[rows, v] = np.sqrt(var + (1 - w) ** 2 * doubt[v])
    return np.concatenate([np.stack([m, b, s], 1).ravel(), np.stack([quality.ravel(), sd.ravel()], 1).ravel()])
