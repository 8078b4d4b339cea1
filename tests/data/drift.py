"""drift.py >drift.txt - wealth of three bets against a mean, after every similarity, by the authors of the method: confseq
0.0.11 from PyPI (MIT), confseq/betting.py of which needs numpy<2, scipy, matplotlib and multiprocess. Its extension is not
needed: PYTHONPATH=confseq-0.0.11/src. A case is three lines: the null mean, the similarities, the wealth."""
import numpy as np
from confseq.betting import diversified_betting_mart

BETS = 0.1, 0.3, 0.9
rng = np.random.default_rng(1)
for mean, x in (
    (0.8, rng.beta(4, 1, 24)),
    (0.8, rng.beta(2, 3, 24)),
    (0.95, np.where(rng.random(24) < 0.05, 0.0, 1.0)),
    (0.999, np.array([1, 0.999, 0.5, 1, 0, 1])),
    (0.31, np.full(12, 0.31)),
    (0.5, np.array([0, 1, 0, 1, 1, 0, 0.25])),
):
    bets = [lambda x, m, b=b: np.full(len(x), b / (1 - m)) for b in BETS]
    wealth = diversified_betting_mart(x, mean, bets, theta=0, trunc_scale=1)
    print(repr(mean))
    print(*map(repr, x.tolist()))
    print(*map(repr, wealth.tolist()))
