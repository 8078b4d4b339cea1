"""evp.day - engines tell the live plan of a host which prompts came, and are told what to store.

    day = Day("/var/lib/evp/day.jsonl", "/srv/evp/manifest.jsonl")
    day.used(tokens, found, answer)    # calls answer({"id", "n", "config", "tier"}): put that; answer({}): nothing to do

One process has the plan: the first that has something to tell, and when it ends, however it ends, the next one. It holds a
lock, day.jsonl.lock, and listens on day.jsonl.sock; there is no service to run. It carries out moves and evictions at once.
Before anything is carried out, day.jsonl has it, as a manifest; whoever comes next opens that, or the manifest if that is
newer. No engine waits: a thread tells, and uses that it cannot tell are forgotten.

A prompt's context is the longest one that the plan knows. Where a prompt shares at least 256 tokens more with an earlier
one, what they share, in steps of 64, becomes a context, day/DIGEST. So a text is stored the second time it comes.

Writes to a tier keep to what is left of its bandwidth: a put begins only when all reads and writes before it, one after the
other, would have ended. What needs more than an engine's rows stays in the plan without a payload, for evp-pack and
evp-load of day.jsonl.
"""
import array
import fcntl
import hashlib
import json
import os
import queue
import socket
import struct
import threading
import time
from multiprocessing.connection import Client, Listener

import evp
from evp import engine

STEP, LEAST = 64, 256
SEEN = 1 << 17     # beginnings of prompts that are remembered, twice
PUT_S = 60.0       # until what was to be put, and was not found, counts as lost
ANSWER_S = 60.0    # that an owner may take, who moves payloads meanwhile
WAITING = 256      # uses that wait to be told
LARGEST = 1 << 26  # bytes of what is told


def _mine(connection):
    """The connection, if its other end is a process of this user: who is told prompts, and who may remove payloads."""
    with socket.socket(fileno=os.dup(connection.fileno())) as end:
        if struct.unpack("3i", end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1] == os.geteuid():
            return connection
    connection.close()
    raise PermissionError("another user is at the other end of its socket")


class Day:
    """What an engine tells, from any thread."""

    def __init__(self, path, manifest, name_space=None):
        self.path, self.of = os.path.abspath(path), (manifest, name_space)
        self.todo, self.to, self.owner = queue.Queue(WAITING), None, None
        threading.Thread(target=self._tell, name="evp-day", daemon=True).start()

    def used(self, tokens, found=0, answer=None):
        """A prompt has its first token. found: tokens of it that were placed. answer: called once, on another thread; None:
        the engine cannot put this one."""
        self._put({"found": found, "store": answer is not None}, tokens, answer or (lambda said: None))

    def lost(self, name):
        """What an answer said was not put, by its id; or what is damaged or gone, by its token digest."""
        self._put({"lost": name}, (), lambda said: None)

    def _put(self, message, tokens, answer):
        try:
            self.todo.put_nowait((message, tokens, answer))
        except queue.Full:
            answer({})

    def _tell(self):
        while True:
            message, tokens, answer = self.todo.get()
            try:
                answer(self._ask(json.dumps(message).encode() + b"\n" + array.array("i", tokens).tobytes()))
            except (OSError, EOFError, ValueError, evp.Error) as error:
                engine.once(f"the live plan is not told of uses: {error}")
                answer({})

    def _ask(self, message):
        for again in True, False:
            try:
                if not self.to:
                    self.to = self._connect()
                self.to.send_bytes(message)
                if self.to.poll(ANSWER_S):
                    return json.loads(self.to.recv_bytes(LARGEST))
                raise TimeoutError("its owner does not answer")
            except (OSError, EOFError) as error:  # its owner has ended
                self.to = None
                if not again or isinstance(error, TimeoutError):
                    raise

    def _connect(self):
        lock = os.open(self.path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.owner = _Owner(lock, self.path, *self.of)
        except BlockingIOError:  # somebody is the owner
            os.close(lock)
        except BaseException:
            os.close(lock)
            raise
        return _mine(Client(self.path + ".sock", "AF_UNIX"))


class _Owner:
    def __init__(self, lock, path, manifest, name_space):
        self.held, self.path, self.manifest, self.name_space = lock, path, manifest, name_space
        self.lock, self.seen, self.seen_before = threading.Lock(), set(), set()
        self._open()
        if os.path.lexists(path + ".sock"):
            os.unlink(path + ".sock")
        listener = Listener(path + ".sock", "AF_UNIX", backlog=16)
        threading.Thread(target=self._listen, args=(listener,), name="evp-day-owner", daemon=True).start()

    def _open(self):
        made = os.stat(self.manifest).st_mtime_ns
        saved = os.path.exists(self.path) and os.stat(self.path).st_mtime_ns >= made
        path = self.path if saved else self.manifest
        self.plan, self.store, self.made = evp.open_plan(path), evp.open(self.manifest, self.name_space), made
        self.ids, self.lengths, self.at, self.due, self.busy = {}, set(), {}, {}, {}
        with open(path) as rows:
            for row in map(json.loads, rows):
                if "tiers" in row:
                    self.tiers = {tier["name"]: tier for tier in row["tiers"]}
                elif "id" in row:
                    self._know(row["id"], row["token_digest"], row["n_tokens"])
                    self.at[row["id"]] = row["tier"], row["bytes"]

    def _know(self, id, digest, n):
        self.ids[digest] = id
        self.lengths.add(n)

    def _listen(self, listener):
        while True:
            try:
                threading.Thread(target=self._answer, args=(_mine(listener.accept()),), daemon=True).start()
            except OSError as error:
                engine.once(f"the live plan is not told of a use: {error}")

    def _answer(self, connection):
        try:
            while True:
                message, _, tokens = connection.recv_bytes(LARGEST).partition(b"\n")
                with self.lock:
                    answer = self._told(json.loads(message), tokens)
                connection.send_bytes(json.dumps(answer).encode())
        except EOFError:
            pass
        except (OSError, KeyError, TypeError, ValueError, evp.Error) as error:
            engine.once(f"the live plan does not understand what it is told: {error}")
        connection.close()

    def _told(self, message, tokens):
        if os.stat(self.manifest).st_mtime_ns != self.made:
            self._open()
        if "lost" in message:
            self._lose(self.ids.get(message["lost"], message["lost"]))
            return {}
        context = self._context(tokens)
        if not context:
            return {}
        id, _, n = context
        tier, size = self.at.get(id, ("recompute", 0))
        if message["found"] >= n:
            if tier not in self.tiers:  # an earlier plan's, which the next load removes
                return {}
            self._take(tier, size, "read")
        elif tier in self.tiers and message["store"] and time.monotonic() > self.due.get(id, 0):
            self._lose(id)  # it was computed, so it is not there
        return self._event(*context, message["store"])

    def _context(self, tokens):
        """(id, digest, tokens) of what a prompt is about; None: nothing that has come before."""
        at, known, shared, digest = 0, None, None, hashlib.sha256()
        for n in sorted(self.lengths.union(range(STEP, len(tokens) // 4, STEP))):
            if n >= len(tokens) // 4:
                break
            digest.update(tokens[4 * at:4 * n])
            at, name = n, digest.hexdigest()
            if name in self.ids:
                known = self.ids[name], name, n
            if n % STEP == 0:
                if name[:16] in self.seen or name[:16] in self.seen_before:
                    shared = "day/" + name, name, n
                self.seen.add(name[:16])
        if len(self.seen) > SEEN:
            self.seen, self.seen_before = set(), self.seen
        if shared and shared[2] >= LEAST + (known[2] if known else 0):
            self._know(*shared)
            return shared
        return known

    def _event(self, id, digest, n, at_hand):
        """A use: carries out what the plan decides, and returns what the engine shall put."""
        answer, ops = {}, self.plan.used(id, at_s=time.time(), token_digest=digest, n_tokens=n)
        self.at.update((op.id, (op.to_tier, op.to_bytes)) for op in ops)
        if ops:
            self.plan.save(self.path)
        for op in ops:
            if op.kind == "evict":
                self._try(self.store.remove, op.id)
            elif op.kind == "move":
                self._take(op.to_tier, op.to_bytes, "write")
                if not self._try(self.store.move, op.id, op.to_tier):
                    self._lose(op.id)
            elif op.id == id and at_hand and evp.encodable(op.to_config) and self.busy.get(op.to_tier, 0) <= time.monotonic():
                self._take(op.to_tier, op.to_bytes, "write")
                self.due[id] = time.monotonic() + PUT_S
                answer = {"id": id, "n": n, "config": op.to_config, "tier": op.to_tier}
            elif op.kind == "recompress":
                self._lose(op.id)
            elif evp.encodable(op.to_config) or op.id.startswith("day/"):  # nobody has the text of those
                self._try(self.plan.lost, op.id)
                self.at.pop(op.id)
        return answer

    def _take(self, tier, size, what):
        """A read or a write of a tier, after all before it."""
        self.busy[tier] = max(self.busy.get(tier, 0), time.monotonic()) + size / self.tiers[tier][what + "_bytes_per_s"]

    def _lose(self, id):
        self.at.pop(id, None)
        self._try(self.store.remove, id)
        self._try(self.plan.lost, id)

    @staticmethod
    def _try(change, *arguments):
        try:
            change(*arguments)
            return True
        except evp.Error as error:
            if not isinstance(error, evp.Unknown):
                engine.once(str(error))
            return False
