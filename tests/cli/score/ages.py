"""ages.py same A B [PREFIX...] - are the datasets (under the prefixes) of two tables equal, bit for bit?
ages.py means TABLE HALF_LIFE_S - NumPy's weighted means of what the table has for each question."""
import sys
import h5py, numpy as np


def read(path):
    with h5py.File(path) as f:
        found = {}
        f.visititems(lambda name, o: found.update({"/" + name: o[()]}) if isinstance(o, h5py.Dataset) else None)
        attrs = {k: v for k, v in f.attrs.items() if k != "lineage"}
        return found, attrs


def same(a, b, *prefixes):
    (a, a_attrs), (b, b_attrs) = read(a), read(b)
    wanted = lambda name: not prefixes or name.startswith(prefixes)
    bits = lambda v: v.tolist() if v.dtype.kind == "O" else v.tobytes()
    assert a.keys() == b.keys() and str(a_attrs) == str(b_attrs)
    differ = [name for name in a if wanted(name) and (a[name].shape != b[name].shape or bits(a[name]) != bits(b[name]))]
    print(f"{sum(map(wanted, a))} datasets,", f"of which differ {' '.join(sorted(differ))}" if differ else "the same")


def means(path, half_life):
    t = read(path)[0]
    at = t["/questions/asked_at"]
    weight = np.where(np.isnan(at), 1.0, 0.5 ** ((np.nanmax(at) - at) / half_life))
    n_cells = worst = 0
    for split in b"train", b"test":
        name = split.decode()
        for mean, each in (("/quality/", "/answers/similarity"), ("/facts/", "/answers/facts_kept"), ("/token_f1/", "/answers/token_f1")):
            for c, v in np.ndindex(t["/cells/bytes"].shape):
                of = (t["/questions/context"] == c) & (t["/questions/split"] == split) & ~np.isnan(t[each][:, v])
                s, w = np.clip(t[each][of, v].astype(float), 0, 1), weight[of]
                is_mean = t[mean + name][c, v]
                n_cells += 1
                if not of.any():
                    assert np.isnan(is_mean)
                    continue
                worst = max(worst, abs(is_mean - np.average(s, weights=w)))
                if mean != "/quality/":
                    continue
                n = round(w.sum() ** 2 / (w**2).sum())
                assert t[f"/quality/{name}_n"][c, v] == n
                std = t[f"/quality/{name}_std"][c, v]
                # aweights of numpy.cov: sum(w (s - m)^2) / (sum(w) - sum(w^2) / sum(w))
                assert np.isnan(std) if n < 2 else abs(std - np.sqrt(np.cov(s, aweights=w, ddof=1))) < 1e-9, (std, s, w)
    print(f"{n_cells} means, NumPy's to {'1e-12' if worst < 1e-12 else worst}")


if sys.argv[1] == "same":
    same(*sys.argv[2:])
else:
    means(sys.argv[2], float(sys.argv[3]))
