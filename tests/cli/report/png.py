"""png.py FILE - says whether a screenshot shows something: the share of pixels that are not white, and how many shades of
grey there are. Without any library."""
import struct, sys, zlib

data, at, packed = open(sys.argv[1], "rb").read(), 8, b""
while at < len(data):
    n, kind = struct.unpack(">I4s", data[at:at + 8])
    body = data[at + 8:at + 8 + n]
    if kind == b"IHDR":
        width, height, depth, colour = struct.unpack(">IIBB", body[:10])
    packed += body if kind == b"IDAT" else b""
    at += n + 12
assert depth == 8 and colour in (2, 6)
bpp = 3 if colour == 2 else 4
raw, line, seen, dark = zlib.decompress(packed), bytearray(width * bpp), set(), 0
for y in range(height):
    begin = y * (width * bpp + 1)
    kind, row = raw[begin], bytearray(raw[begin + 1:begin + 1 + width * bpp])
    for i in range(len(row)):
        a, b, c = (row[i - bpp] if i >= bpp else 0), line[i], (line[i - bpp] if i >= bpp else 0)
        if kind == 1:
            add = a
        elif kind == 2:
            add = b
        elif kind == 3:
            add = (a + b) // 2
        elif kind == 4:
            p = a + b - c
            add = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
        else:
            add = 0
        row[i] = (row[i] + add) & 255
    line = row
    for i in range(0, len(row), bpp):
        grey = (row[i] + row[i + 1] + row[i + 2]) // 3
        seen.add(grey)
        dark += grey < 200
share = dark / (width * height)
print("something is on the screen" if 0.005 < share < 0.9 and len(seen) > 20 else f"blank? {share} {len(seen)}")
