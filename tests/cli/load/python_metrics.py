"""python_metrics.py MANIFEST FOLDER - three processes find, fetch and remove, and write their metrics into the folder."""
import os, sys

import evp

def ids(letter, n):
    return [1000 * ord(letter) + i for i in range(n)]

store = evp.open(sys.argv[1])
store.fetch(store.find(ids("a", 150)))
for worker in "one", "two":
    if os.fork() == 0:
        store.find(ids("z", 9))
        store.fetch(store.find(ids("b", 300)))
        store.write_metrics(f"{sys.argv[2]}/{worker} \"\\.prom")
        os._exit(0)
    os.wait()
store.write_metrics(f"{sys.argv[2]}/parent.prom")
store.remove("a1")
try:
    store.remove("a1")
except evp.Unknown:
    store.write_metrics(f"{sys.argv[2]}/parent.prom")
