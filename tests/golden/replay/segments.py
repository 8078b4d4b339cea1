"""segments.py TRACE - called by check: misses of ARC and SLRU on a trace in libCacheSim's format, ARC line by line from Figure 4 of
its paper (Megiddo, Modha, FAST 2003), SLRU from its own (Karedla et al., 1994) with four fifths of the cache protected. A line for
each: name, capacity, share of misses."""
import struct, sys
from collections import OrderedDict


def arc(requests, c):
    t1, t2, b1, b2 = (OrderedDict() for _ in range(4))  # the least recently used first
    p, misses = 0, 0

    def replace(x):
        if t1 and ((x in b2 and len(t1) == p) or len(t1) > p):
            b1[t1.popitem(last=False)[0]] = 1
        else:
            b2[t2.popitem(last=False)[0]] = 1

    for x in requests:
        if x in t1 or x in t2:
            (t1 if x in t1 else t2).pop(x)
            t2[x] = 1
            continue
        misses += 1
        if x in b1:
            p = min(c, p + max(len(b2) / len(b1), 1))
            replace(x)
            b1.pop(x)
            t2[x] = 1
        elif x in b2:
            p = max(0, p - max(len(b1) / len(b2), 1))
            replace(x)
            b2.pop(x)
            t2[x] = 1
        else:
            if len(t1) + len(b1) == c:
                if len(t1) < c:
                    b1.popitem(last=False)
                    replace(x)
                else:
                    t1.popitem(last=False)
            elif len(t1) + len(t2) + len(b1) + len(b2) >= c:
                if len(t1) + len(t2) + len(b1) + len(b2) == 2 * c:
                    b2.popitem(last=False)
                replace(x)
            t1[x] = 1
    return misses


def slru(requests, c):
    probation, protected = OrderedDict(), OrderedDict()
    misses = 0
    for x in requests:
        if x in protected or probation.pop(x, None):
            protected[x] = 1
            protected.move_to_end(x)
            if len(protected) > c - c // 5:
                probation[protected.popitem(last=False)[0]] = 1
            continue
        misses += 1
        if len(probation) + len(protected) == c:
            (probation or protected).popitem(last=False)
        probation[x] = 1
    return misses


trace = open(sys.argv[1], "rb").read()
requests = [struct.unpack_from("<Q", trace, at + 4)[0] for at in range(0, len(trace), 24)]
for policy in arc, slru:
    for capacity in 10, 100, 1000, 10000:
        print(policy.__name__, capacity, f"{policy(requests, capacity) / len(requests):.4f}")
