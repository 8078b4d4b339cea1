# Bounds of an archive, below, at and above each: size of an entry, of all entries, their ratio, their number. Entries are
# hidden files, so nothing of them is read: they count with the size in their header. An archive that is not refused
# holds no contexts.
python3 - <<'END'
import gzip, struct

def zipped(archive, sizes, bytes=0):
    """A zip whose entries only claim their sizes, made `bytes` long by what is in front of it."""
    entries, directory, at = b"", b"", bytes
    for i, size in enumerate(sizes):
        name = b".%d" % i
        fields = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 0, 0, 2, size, len(name), 0)
        directory += b"PK\1\2" + struct.pack("<H", 20) + fields + struct.pack("<HHHII", 0, 0, 0, 0, at + len(entries)) + name
        entries += b"PK\3\4" + fields + name + b"\3\0"
    rest = len(entries) + len(directory) + 22
    end = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, len(sizes), len(sizes), len(directory), bytes + len(entries), 0)
    with open(archive, "wb") as f:
        f.seek(bytes)
        f.write(entries + directory + end)
    return bytes + rest

GIB = 1 << 30
enough = 8 * GIB // 200 + 1
for more in -1, 0, 1:
    zipped(f"entry{more}.zip", [GIB + more], enough)
    zipped(f"total{more}.zip", [GIB] * 7 + [GIB - 1, 1 + more], enough)
    zipped(f"free{more}.zip", [(16 << 20) + more])
    packed = zipped("ratio.zip", [0], 100000)
    zipped(f"ratio{more}.zip", [200 * (packed + 1) - 1 + more], 100000)

# A million empty files, as cpio writes them.
def one(name):
    return b"070707" + b"0" * 12 + b"100644" + b"0" * 12 + b"000001" + b"0" * 17 + b"%06o" % (len(name) + 1) + b"0" * 11 + name + b"\0"
for more in -1, 0, 1:
    with gzip.open(f"number{more}.cpio.gz", "wb", 1) as f:
        f.write(one(b".x") * ((1 << 20) + more) + one(b"TRAILER!!!"))
END
for bound in entry total free ratio number; do
	for more in -1 0 1; do
		evp-import $bound$more.* 2>&1 | sed 's/^evp-import: error: //'
	done
done
