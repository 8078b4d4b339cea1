"""caches.py BUILD - million requests per second in the caches of evp-replay beside libCacheSim's (the package
libcachesim), on the same requests, in turns, the fastest of three."""
import subprocess, sys, tempfile, time
import libcachesim as lcs

ROUNDS, CAPACITY = 3, 100000
PEERS = dict(fifo=lcs.FIFO, lru=lcs.LRU, sieve=lcs.Sieve, s3fifo=lcs.S3FIFO, lfu=lcs.LFU, gdsf=lcs.GDSF)
ours, theirs, misses = {}, {}, {}
with tempfile.NamedTemporaryFile(suffix=".oracleGeneral") as trace:
    for _ in range(ROUNDS):
        for line in subprocess.run([f"{sys.argv[1]}/tests/bench/caches", trace.name], check=True, stdout=subprocess.PIPE,
                                   text=True).stdout.splitlines():
            name, rate, missed = line.split()
            ours[name], misses[name] = max(ours.get(name, 0), float(rate)), [missed]
        for name, Cache in PEERS.items():
            reader = lcs.TraceReader(trace.name, lcs.TraceType.ORACLE_GENERAL_TRACE)
            start = time.perf_counter()
            missed, _ = Cache(CAPACITY, reader=reader).process_trace(reader)
            rate = reader.get_num_of_req() / (time.perf_counter() - start) / 1e6
            theirs[name] = max(theirs.get(name, 0), rate)
            misses[name].append(f"{missed:.4f}")
print("cache   M requests/s  libCacheSim  ratio  misses")
for name, rate in ours.items():
    peer = theirs.get(name)
    print(f"{name:8}{rate:12.1f}{peer:13.1f}{rate / peer:7.1f}  {' '.join(misses[name][:1] + misses[name][-1:])}" if peer
          else f"{name:8}{rate:12.1f}            -      -  {misses[name][0]}")
