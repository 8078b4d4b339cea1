"""redis_front.py - a server in front of Redis: passes everything on, or is away, slow, silent, or never ends an answer."""
import contextlib, socket, threading, time


class Front:
    """Listens on `port`. The mode of a connection is the one when it begins; a change of the mode ends all connections."""

    def __init__(self, port, back):
        self.back, self.mode, self.open = back, "pass", []
        self.listener = socket.create_server(("127.0.0.1", port), backlog=64)
        threading.Thread(target=self.accept, daemon=True).start()

    def set(self, mode):
        self.mode = mode
        for s in self.open:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
        self.open = []

    def accept(self):
        while True:
            client = self.listener.accept()[0]
            self.open.append(client)
            if self.mode == "away":
                client.close()
            else:
                threading.Thread(target=self.serve, args=(client, self.mode), daemon=True).start()

    def serve(self, client, mode):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.back)) as server:
            if mode in ("pass", "slow"):
                threading.Thread(target=self.copy, args=(client, server), daemon=True).start()
                self.copy(server, client, 0.1 if mode == "slow" else 0)
            while mode == "silent" and client.recv(65536):
                pass
            client.sendall(b"+")
            while mode == "endless":
                client.sendall(b"x" * 65536)

    @staticmethod
    def copy(source, to, wait_s=0):
        with contextlib.suppress(OSError):
            while True:
                some = source.recv(65536)
                time.sleep(wait_s)
                to.sendall(some)
                if not some:
                    return to.shutdown(socket.SHUT_RDWR)
