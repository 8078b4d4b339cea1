"""reference.py - planner/belief.h in NumPy, written from the formulas."""
import numpy as np


def reference(mean, std, n, prior=None):
    """The mean, between and within of every config, then the prediction and its deviation of every cell, as one list. prior (3, V): mean, between, within; NaN where it says nothing. It counts
    as ten contexts of twelve questions."""
    C, V = mean.shape
    m, b, s = (np.full(V, np.nan) for _ in range(3))
    m[0], b[0], s[0] = 1, 0, 0
    known = np.zeros(V, bool) if prior is None else ~np.isnan(prior[0])
    asked = (n > 0).any(0) | known
    asked[0] = False
    complete = (n[:, asked] > 0).all(1)
    if not complete.any():
        complete[:] = True

    def posterior(v, rows):
        noise = b[v] + s[v] / n[rows, v]
        w = np.divide(b[v], noise, out=np.ones(len(rows)), where=noise > 0)
        return np.minimum(m[v] + w * (mean[rows, v] - m[v]), 1), b[v] * (1 - w)

    # within: pooled, the prior counts as 110 degrees of freedom, the pool of all configs as three
    squares = np.where(n > 1, (n - 1) * np.nan_to_num(std) ** 2, 0).sum(0) * asked
    freedom = np.where(n > 1, n - 1, 0).sum(0) * asked
    if prior is not None:
        squares, freedom = squares + 110 * np.where(known, prior[2], 0) * asked, freedom + 110 * known * asked
    if freedom.sum():
        s[asked] = ((squares + 3 * squares.sum() / freedom.sum()) / (freedom + 3))[asked]

    for v in np.flatnonzero(asked):
        rows = np.flatnonzero(n[:, v] > 0)
        if known[v]:
            m[v], b[v] = prior[0, v], prior[1, v]
        else:
            some = np.flatnonzero(complete & (n[:, v] > 0))
            y, per = mean[some, v], np.mean(1 / n[some, v])
            m[v] = y.mean()
            variance = y.var(ddof=1) if len(y) > 1 else 0
            if not freedom.sum():
                s[v] = variance / per if len(y) > 1 else 0.07
            b[v] = max(0, variance - s[v] * per)
        for _ in range(4):  # the prior is ten more contexts, whose mean and variance are its own
            q, var = posterior(v, rows)
            if known[v]:
                q, var = np.append(q, prior[0, v]), np.append(var, prior[1, v])
            weights = np.append(np.ones(len(rows)), 10) if known[v] else np.ones(len(rows))
            m[v] = np.average(q, weights=weights)
            b[v] = np.average(var + (q - m[v]) ** 2, weights=weights)
    if asked.any() and s[asked].sum() > 0:
        k = 10 / (9 + (n > 0).sum(0)[asked] + 10 * known[asked])
        b[asked] = np.minimum((1 - k) * b[asked] + k * b[asked].sum() * s[asked] / s[asked].sum(), 0.25)
    doubt = np.zeros(V)
    for v in np.flatnonzero(asked):
        rows, more = np.flatnonzero(n[:, v] > 0), 10 * known[v]
        b[v] = (5 * 0.1 * s[v] + (len(rows) + more) * b[v]) / (5 + len(rows) + more)
        doubt[v] = 1 / ((1 / np.maximum(b[v] + s[v] / n[rows, v], 1e-12)).sum() + more / max(b[v] + s[v] / 12, 1e-12))
    quality, sd = np.tile(m, (C, 1)), np.tile(np.sqrt(b + doubt), (C, 1))
    for v in range(V):
        rows = np.flatnonzero(n[:, v] > 0)
        quality[rows, v], var = posterior(v, rows)
        w = np.divide(b[v], b[v] + s[v] / n[rows, v], out=np.ones(len(rows)), where=b[v] + s[v] > 0)
        sd[rows, v] = np.sqrt(var + (1 - w) ** 2 * doubt[v])
    return np.concatenate([np.stack([m, b, s], 1).ravel(), np.stack([quality.ravel(), sd.ravel()], 1).ravel()])
