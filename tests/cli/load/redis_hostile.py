"""redis_hostile.py - a Redis server on 127.0.0.1 that misbehaves as the file `mode` says; prints its port.

The test moves that file into place and removes it; without it, the server is a good one.
"""
import os, socket, threading, time

data = {}


def text(b):
    return b"$%d\r\n%s\r\n" % (len(b), b)


def answer(word, *args):
    if word == b"PING":
        return b"+PONG\r\n"
    if word == b"SET":
        data[args[0]] = args[1]
        return b"+OK\r\n"
    if word == b"GETSET":
        old = data.get(args[0])
        data[args[0]] = args[1]
        return text(old) if old is not None else b"$-1\r\n"
    if word == b"GET":
        return text(data[args[0]]) if args[0] in data else b"$-1\r\n"
    if word == b"STRLEN":
        return b":%d\r\n" % len(data.get(args[0], b""))
    if word == b"GETRANGE":
        return text(data.get(args[0], b"")[int(args[1]):int(args[2]) + 1])
    if word == b"UNLINK":
        return b":%d\r\n" % (data.pop(args[0], None) is not None)
    if word == b"SCAN":
        return b"*2\r\n$1\r\n0\r\n*%d\r\n" % len(data) + b"".join(map(text, data))
    return b"-ERR unknown command\r\n"


def misbehave(s, mode, words):
    """Says whether it did."""
    if mode == "endless" and words[0] in (b"GET", b"PING", b"GETRANGE"):
        while True:  # a line without an end
            s.sendall(b"+" + b"x" * 65536)
    elif mode == "drip" and words[0] == b"GETRANGE":
        for byte in answer(*words):
            s.sendall(bytes([byte]))
            time.sleep(0.02)
    elif mode == "circle" and words[0] == b"SCAN":  # the cursor never returns to 0
        time.sleep(0.02)
        s.sendall(b"*2\r\n$1\r\n7\r\n*0\r\n")
    elif mode == "wide" and words[0] == b"CLUSTER":  # each of the lists is of a length that is allowed
        s.sendall(b"*15\r\n")
        for _ in range(15):
            s.sendall(b"*1048000\r\n" + b":1\r\n" * 1048000)
    else:
        return False
    return True


def serve(s):
    f = s.makefile("rb")
    try:
        while line := f.readline():
            words = []
            for _ in range(int(line[1:])):
                n = int(f.readline()[1:])
                words.append(f.read(n))
                f.read(2)
            mode = open("mode").read().strip() if os.path.exists("mode") else ""
            if not misbehave(s, mode, words):
                s.sendall(answer(*words))
    except OSError:
        pass
    finally:
        s.close()


listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(50)
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
