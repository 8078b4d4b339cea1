"""file.py BUILD [N] - is evp-plan on a table of N contexts (100000) x 60 configs bounded by reading it?

Makes the table (uncompressed, as table_write makes it), plans it five times, and in between lets h5py read the datasets
that evp-plan reads and writes the manifest's bytes once more: what is left when nothing is computed. All files are in
the page cache. Then the next night with --max-move beside one without. The fastest of five each; memory is that of evp-plan and the child that reads, whichever is higher.
"""
import json, os, random, re, resource, subprocess, sys, tempfile, time

build, n = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100000
datasets = """/contexts/id /contexts/token_digest /contexts/n_tokens /contexts/kv_bytes /contexts/prefill_s
    /contexts/question_s /configs/name /cells/bytes /cells/size_frac /cells/decompress_s /quality/train
    /quality/test""".split()


def h5py_seconds(path):
    """In a process of its own, which starts with no memory of the last."""
    code = f"""import h5py, time
start = time.perf_counter()
with h5py.File({path!r}) as f:
    kept = [f[name][()] for name in {datasets!r}]
print(time.perf_counter() - start, sum(f.nbytes for f in kept))"""
    seconds, data = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), int(data)


def write_seconds(path, copy):
    data = open(path, "rb").read()
    start = time.perf_counter()
    with open(copy, "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
    return time.perf_counter() - start


def plan(table, tiers, out, *more):
    """Seconds of reading, solving, writing, and of the processors."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = subprocess.run([f"{build}/evp-plan", table, "--tiers", tiers, "-o", out, *more], check=True, capture_output=True,
                          text=True).stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    read, solved, wrote = map(float, re.search(r"in ([\d.]+) s, solved in ([\d.]+) s, wrote in ([\d.]+) s", said).groups())
    return read, solved, wrote, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def written(path):
    """Bytes that a manifest's operations write."""
    with open(path) as f:
        return sum(int(re.search(r'"bytes":(\d+)', line)[1]) for line in f if re.search('"operation":"(insert|move|recompress)"', line))


def capped(table, tiers, before, scratch):
    """The next night's plan, for other accesses, with a cap on what it writes and without one."""
    log, free, cap = (f"{scratch}/{name}" for name in ("log.jsonl", "free.jsonl", "capped.jsonl"))
    with open(before) as f, open(log, "w") as out:
        draw = random.Random(1)
        ids = [m[1] for m in (re.match(r'{"id":"([^"]*)"', line) for line in f) if m]
        out.writelines(f'{{"context":"{i}","count":{draw.lognormvariate(0, 1):.3f}}}\n' for i in ids)
    night = ["--access", log, "--previous", before]
    alone = min(plan(table, tiers, free, *night)[1] for _ in range(3))
    all_bytes = written(free)
    print(f"  the next night, solved in {alone:.2f} s, writes {all_bytes / 1e9:.0f} GB; with --max-move")
    for share in 0.5, 0.1, 0.01:
        limit = int(share * all_bytes)
        solved = min(plan(table, tiers, cap, *night, "--max-move", str(limit))[1] for _ in range(2))
        head = json.loads(open(cap).readline())
        print(f"  {share:4.0%} of that: solved in {solved:.2f} s, ratio {solved / alone:.2f}; {written(cap) / limit:.1%} of the cap written,"
              f" gap {head['gap']:.1e}, of the gain {head['gain_gap']:.1e}")


with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", ".")) as scratch:
    table, tiers, out = (f"{scratch}/{name}" for name in ("table.h5", "tiers.json", "manifest.jsonl"))
    subprocess.run([f"{build}/tests/bench/table", str(n), "1", table, tiers], check=True)
    runs, peers, writes = [], [], []
    for _ in range(5):
        runs.append(plan(table, tiers, out))
        peers.append(h5py_seconds(table))
        writes.append(write_seconds(out, f"{scratch}/copy"))
    read, solved, wrote, cpu = min(runs, key=lambda r: r[0] + r[2])
    peak = int(subprocess.run([sys.executable, "-c", f"""import resource, subprocess
subprocess.run([{build + "/evp-plan"!r}, {table!r}, "--tiers", {tiers!r}, "-q", "-o", {out!r}], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"""], check=True, capture_output=True, text=True).stdout) * 1024
    size, (h5, data), write = os.path.getsize(table), min(peers), min(writes)
    print(f"evp-plan on a table of {n} contexts x 60 configs, {size / 1e6:.0f} MB, no compression; {data / 1e6:.0f} MB of it read")
    print(f"  evp-plan: read {read:.2f} s, solved {solved:.2f} s, wrote {wrote:.2f} s; {cpu:.1f} s of CPU")
    print(f"  h5py reads the same datasets in {h5:.2f} s: ratio {read / h5:.2f}; the manifest's {os.path.getsize(out) / 1e6:.0f} MB"
          f" are written in {write:.2f} s")
    print(f"  all but solving {read + wrote:.2f} s, h5py and bytes {h5 + write:.2f} s: ratio {(read + wrote) / (h5 + write):.2f}")
    print(f"  peak RSS {peak / 1e6:.0f} MB: {peak / size:.2f} of the table's bytes, {peak / data:.2f} of those read")
    capped(table, tiers, out, scratch)
