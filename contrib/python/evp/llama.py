"""evp.llama - a proxy in front of llama-server that lets it answer from placed contexts.

    llama-server -m MODEL.gguf --slot-save-path SLOTS/ ...
    python -m evp.llama --server http://127.0.0.1:8080 --slots SLOTS --manifest M --listen 127.0.0.1:8081

A completion whose prompt begins with a placed context is sent to a slot that holds the context already, or into which the
proxy restores it: it writes a slot file (evp.slot), lets the server read it, and removes it. Everything else passes
through unchanged, also completions with images, LoRA adapters or a slot of their own. The manifest may come later.
Whatever fails here: the request goes on as it came, and standard error says why. `timings.cache_n` of an answer is the
number of tokens not computed.
"""
import argparse
import http.client
import http.server
import json
import os
import re
import select
import socket
import sys
import threading
import time
import urllib.parse

import evp
import evp.gguf
import evp.slot
from evp.day import Day
from evp.engine import Store, once

COMPLETIONS = {"/completion", "/completions", "/v1/completions", "/chat/completions", "/v1/chat/completions"}
# Members of a request that choose a slot, weights or other inputs than text, or several answers.
NOT_OURS = {"id_slot", "lora", "image_data", "multimodal_data"}
KEYS = ("Authorization", "X-Api-Key")
HOP = {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade",
       "content-length"}
MOST_BODY = 256 << 20
CLIENT_S, CALL_S = 60, 600  # a client that takes nothing; one of our own calls, which waits for a slot that is in use
PAUSE_S = 60                # until a server is asked again that cannot be used
TAIL = 16384                # the end of an answer, where its timings are


class Trouble(Exception):
    """A request cannot be served from a placed context: the sentence says why."""


class ClientGone(Exception):
    """The client closed its connection, or takes nothing any more."""


# ---- the server --------------------------------------------------------------------------------------------------


class Server:
    """Calls to llama-server with the API key (headers) of the request that needs them."""

    def __init__(self, url):
        at = urllib.parse.urlsplit(url)
        if at.scheme not in ("http", "https") or not at.hostname:
            raise ValueError(f"'{url}' is not the URL of a server")
        self.kind = http.client.HTTPSConnection if at.scheme == "https" else http.client.HTTPConnection
        self.host, self.port, self.prefix = at.hostname, at.port, at.path.rstrip("/")

    def connect(self, timeout):
        return self.kind(self.host, self.port, timeout=timeout)

    def call(self, path, body=None, key=None):
        """The JSON answer to a GET, or a POST of `body`."""
        connection = self.connect(CALL_S)
        headers = {"Content-Type": "application/json", **(key or {})}
        try:
            connection.request("POST" if body is not None else "GET", self.prefix + path,
                               None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            data = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise Trouble(f"llama-server answers {path} with {response.status}: {data[:200].decode('utf-8', 'replace')}")
        return json.loads(data)


class Slot:
    """What we know of a slot: which placed prefix it holds, the tokens of its last prompt, its last task."""

    def __init__(self, number):
        self.number, self.busy, self.used = number, False, 0
        self.forget()

    def forget(self):
        self.key, self.tokens, self.task = None, [], None


def _shared(a, b):
    """Length of the common beginning of two lists."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[:middle] == b[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class Slots:
    """The slots of the server; one request at a time uses a slot."""

    def __init__(self, n):
        self.all, self.free, self.clock = [Slot(i) for i in range(n)], threading.Condition(), 0

    def take(self, key, tokens, idle):
        """The slot that holds the prefix and most of the prompt, or the least recently used of those that are idle, or of
        all; waits for other requests of this proxy."""
        with self.free:
            while True:
                ours = [s for s in self.all if not s.busy]
                if ours:
                    break
                self.free.wait()
            holders = [s for s in ours if s.key == key]
            slot = (max(holders, key=lambda s: _shared(s.tokens, tokens)) if holders else
                    min(ours, key=lambda s: (s.number not in idle, s.used)))
            self.clock += 1
            slot.busy, slot.used = True, self.clock
            return slot

    def give(self, slot):
        with self.free:
            slot.busy = False
            self.free.notify()


# ---- from a request to a slot ------------------------------------------------------------------------------------


class Placed:
    """Placed contexts for the slots of one server."""

    def __init__(self, server, folder, store, gguf=None, name=None, digest=None, tag=""):
        self.server, self.folder, self.store = server, folder, store
        self.gguf, self.name, self.digest, self.tag = gguf, name, digest, tag
        self.lock, self.probed, self.day = threading.Lock(), None, None

    def take(self, path, body, key):
        """A slot that holds the longest placed prefix of a request, with the prefix; None: none is placed. The caller
        gives the slot back."""
        tokens = self._tokens(path, body, key)
        self.store.refresh()
        found = tokens and self.store.find(tokens[:-1])  # one token is left, to be computed
        if tokens and self.day:
            self.day.used(tokens, found.n_tokens if found else 0)
        if not found:
            return None
        state = self._probe(key)
        if found.n_tokens >= state.n_ctx:
            raise Trouble(f"{found.n_tokens} tokens do not fit into a slot of {state.n_ctx}")
        seen = {s["id"]: s for s in self.server.call("/slots", key=key)}
        idle = {i for i, s in seen.items() if not s["is_processing"]}
        what = (found.token_digest, found.n_tokens, found.config, found.checksum)
        slot = state.slots.take(what, tokens, idle)
        try:
            now = seen.get(slot.number, {})
            if slot.key != what or now.get("id_task") != slot.task or now.get("n_prompt_tokens", 0) < found.n_tokens:
                self._restore(state, slot, found, tokens, key)
            slot.key, slot.tokens = what, tokens
        except BaseException:
            slot.forget()
            state.slots.give(slot)
            raise
        return state, slot, found

    def done(self, taken, cached, key):
        """The answer has ended, with `cached` tokens not computed, or None if it does not say so."""
        state, slot, found = taken
        try:
            if cached is None or cached < found.n_tokens:
                slot.forget()
            else:
                slot.task = {s["id"]: s for s in self.server.call("/slots", key=key)}[slot.number].get("id_task")
        except Exception:
            slot.forget()
        finally:
            state.slots.give(slot)

    def _tokens(self, path, body, key):
        """The ids of a request's prompt, as the server makes them."""
        prompt = body.get("prompt")
        if "chat" in path:
            prompt = self.server.call("/apply-template", body, key)["prompt"]
        if isinstance(prompt, list):
            return prompt if all(type(t) is int for t in prompt) else None
        if not isinstance(prompt, str):
            return None
        return self.server.call("/tokenize", {"content": prompt, "add_special": True, "parse_special": True}, key)["tokens"]

    def _probe(self, key):
        """The server's slots and the form of their files, found out again when it is another server, or a new one."""
        with self.lock:
            props, adapters = self.server.call("/props", key=key), self.server.call("/lora-adapters", key=key)
            gguf = self.gguf or props["model_path"]
            at = os.stat(gguf)
            same = (gguf, at.st_mtime_ns, at.st_ino, props.get("build_info"), props["total_slots"], adapters,
                    props["default_generation_settings"]["n_ctx"])
            if not self.probed or self.probed.same != same:
                self.probed = _State(same, time.monotonic() + PAUSE_S)
                try:
                    self._find_out(self.probed, props["total_slots"], adapters, key)
                except Exception as e:
                    self.probed.trouble = str(e) or type(e).__name__
            state = self.probed
            if state.trouble and time.monotonic() > state.until:
                self.probed = None
        if state.trouble:
            raise Trouble(state.trouble)
        return state

    def _find_out(self, state, n_slots, adapters, key):
        if any(adapter.get("scale") for adapter in adapters):
            raise Trouble("llama-server uses a LoRA adapter")
        state.n_ctx, state.slots, state.model = state.same[-1], Slots(n_slots), evp.gguf.read(state.same[0])
        state.template = self._template(n_slots - 1, key)

    def _template(self, slot, key):
        """The form of a slot file, from a short completion."""
        name = f"evp-{self.tag}-probe.bin"
        try:
            self.server.call("/completion", {"prompt": [1, 2, 3, 4], "n_predict": 1, "id_slot": slot, "temperature": 0}, key)
            self.server.call(f"/slots/{slot}?action=save", {"filename": name}, key)
            return evp.slot.Template(os.path.join(self.folder, name))
        finally:
            _remove(os.path.join(self.folder, name))

    def _restore(self, state, slot, found, tokens, key):
        name = f"evp-{self.tag}-{slot.number}.bin"
        path = os.path.join(self.folder, name)
        slot.forget()
        try:
            with self.store.payload(found) as payload:
                reason = state.model.differs(payload, self.name, self.digest)
                if reason:
                    raise Trouble(reason)
                evp.slot.write(path, payload, tokens, state.template, state.model.pairs, sync=False)
            try:
                got = self.server.call(f"/slots/{slot.number}?action=restore", {"filename": name}, key)
            except Trouble:
                self.probed = None  # it may have been started with other options
                raise
            if got.get("n_restored") != found.n_tokens:
                raise Trouble(f"llama-server restored {got.get('n_restored')} of {found.n_tokens} tokens")
            slot.task = None
        finally:
            _remove(path)


class _State:
    """What was found out about a server: n_ctx, slots, model and template, or trouble."""

    def __init__(self, same, until):
        self.same, self.until, self.trouble = same, until, None


def _remove(path):
    try:
        os.unlink(path)
    except OSError:
        pass


def wanted(path, body):
    """Whether a request may be served from a placed context."""
    if path not in COMPLETIONS or not isinstance(body, dict) or NOT_OURS & body.keys():
        return False
    if body.get("cache_prompt") is False or body.get("n", 1) != 1 or body.get("n_cmpl", 1) != 1:
        return False
    messages = body.get("messages") if "chat" in path else []
    return isinstance(messages, list) and all(
        isinstance(m, dict) and (isinstance(m.get("content"), (str, type(None))) or isinstance(m["content"], list) and
                                 all(isinstance(p, dict) and p.get("type") == "text" for p in m["content"]))
        for m in messages)


# ---- HTTP ---------------------------------------------------------------------------------------------------------


class Handler(http.server.BaseHTTPRequestHandler):
    """One client's connection."""
    protocol_version, timeout, server_version = "HTTP/1.1", CLIENT_S, "evp"

    def _any(self):
        self.started = False
        try:
            length = int(self.headers.get("Content-Length", 0))
            if self.headers.get("Transfer-Encoding") or not 0 <= length <= MOST_BODY:
                self.close_connection = True
                return self._say(413, f"the proxy takes requests with a Content-Length of at most {MOST_BODY} bytes")
            self._serve(self._body(length))
        except ClientGone:
            self.close_connection = True
        except (OSError, ValueError, http.client.HTTPException) as e:
            self.close_connection = True
            if not self.started:
                self._say(502, f"llama-server does not answer: {e}")

    do_GET = do_POST = do_PUT = do_DELETE = do_OPTIONS = do_HEAD = do_PATCH = _any

    def _body(self, length):
        try:
            data = self.rfile.read(length)
        except OSError:
            raise ClientGone from None
        if len(data) < length:
            raise ClientGone
        return data

    def _send(self, data):
        try:
            self.wfile.write(data)
        except OSError:
            raise ClientGone from None

    def end_headers(self):
        self._headers_buffer.append(b"\r\n")
        self._send(b"".join(self._headers_buffer))
        self._headers_buffer = []

    def _serve(self, data):
        placed, taken, cached, changed = self.server.placed, None, None, data
        key = {name: self.headers[name] for name in KEYS if name in self.headers}
        path = urllib.parse.urlsplit(self.path).path[len(self.server.behind.prefix):]
        if self.command == "POST" and path in COMPLETIONS:
            try:
                body = json.loads(data)
                taken = placed.take(path, body, key) if wanted(path, body) else None
                if taken:
                    changed = json.dumps({**body, "id_slot": taken[1].number, "cache_prompt": True}).encode()
            except Exception as e:  # whatever it is, the server can answer
                once(f"a request goes on as it came: {e or type(e).__name__}")
        try:
            cached = self._forward(changed)
        finally:
            if taken:
                placed.done(taken, cached, key)

    def _forward(self, data):
        """Sends the request on and its answer back as it comes; returns the answer's timings.cache_n, or None."""
        connection = self.server.behind.connect(None)
        try:
            headers = [(k, v) for k, v in self.headers.items() if k.lower() not in HOP and k.lower() != "expect"]
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers:
                connection.putheader(name, value)
            if data or self.command in ("POST", "PUT", "PATCH"):
                connection.putheader("Content-Length", str(len(data)))
            connection.endheaders(data)
            self._wait(connection.sock)
            response = connection.getresponse()
            return self._answer(response)
        finally:
            connection.close()

    def _wait(self, server):
        """Until the server answers; ClientGone if the client goes away before, which ends the server's work."""
        watched = [server, self.connection]
        while True:
            ready = select.select(watched, [], [])[0]
            if server in ready:
                return
            try:
                if not self.connection.recv(1, socket.MSG_PEEK):
                    raise ClientGone
            except OSError:
                raise ClientGone from None
            watched = [server]  # the client's next request

    def _answer(self, response):
        self.started = True
        self.send_response_only(response.status, response.reason)
        for name, value in response.getheaders():
            if name.lower() not in HOP:
                self.send_header(name, value)
        length = response.getheader("Content-Length")
        empty = self.command == "HEAD" or response.status in (204, 304) or response.status < 200
        chunked = length is None and not empty and self.request_version == "HTTP/1.1"
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif length is not None:
            self.send_header("Content-Length", length)
        elif not empty:
            self.close_connection = True
        self.end_headers()
        tail = b""
        while not empty:
            part = response.read1(65536)
            if not part:
                break
            self._send(b"%x\r\n%s\r\n" % (len(part), part) if chunked else part)
            tail = (tail + part)[-TAIL:]
        if length is not None and not empty and response.length:
            raise OSError("llama-server broke off its answer")
        if chunked:
            self._send(b"0\r\n\r\n")
        counts = re.findall(rb'"cache_n":\s*(\d+)', tail)
        return int(counts[-1]) if counts else None

    def _say(self, status, sentence):
        body = json.dumps({"error": {"code": status, "message": sentence, "type": "proxy"}}).encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self._send(body)

    def log_message(self, *_):
        """Requests are not logged: llama-server does."""


class Proxy(http.server.ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 128

    def __init__(self, listen, behind, placed):
        self.behind, self.placed = behind, placed
        super().__init__(listen, Handler)

    def handle_error(self, request, client_address):
        once(f"a request ended with {sys.exc_info()[1]!r}")


def main():
    parser = argparse.ArgumentParser(prog="python -m evp.llama", description="A proxy in front of llama-server: prompts that "
                                     "begin with a placed context are answered from it.")
    parser.add_argument("--server", required=True, metavar="URL", help="of llama-server")
    parser.add_argument("--slots", required=True, metavar="DIR", help="its --slot-save-path, which the proxy can write to")
    parser.add_argument("--manifest", required=True, help="of the load")
    parser.add_argument("--namespace", help="of the load")
    parser.add_argument("--listen", default="127.0.0.1:8081", metavar="HOST:PORT", help="address of the proxy [%(default)s]")
    parser.add_argument("--model", metavar="FILE", help="the server's GGUF file, if it lies elsewhere on this machine")
    parser.add_argument("--model-name", metavar="NAME", help="name of the payloads' model, if the GGUF file has another")
    parser.add_argument("--model-digest", metavar="DIGEST", help="model_digest of the payloads, in place of the name")
    parser.add_argument("--day", metavar="FILE", help="the live plan of this host, which is told of uses: see evp.day")
    parser.add_argument("--metrics", metavar="FILE", help="counts for node_exporter, NAME-%%p.prom, once a minute")
    at = parser.parse_args()
    host, _, port = at.listen.rpartition(":")
    try:
        server = Server(at.server)
        store = Store(at.manifest, at.namespace, at.metrics)
        placed = Placed(server, at.slots, store, at.model, at.model_name, at.model_digest)
        placed.day = Day(at.day, at.manifest, at.namespace) if at.day else None
        with Proxy((host.strip("[]"), int(port)), server, placed) as proxy:
            placed.tag = f"{socket.gethostname()}-{proxy.server_port}"  # proxies of several hosts may share the folder
            print(f"listening on {host}:{proxy.server_port}", flush=True)
            proxy.serve_forever()
    except KeyboardInterrupt:
        return 0
    except (evp.Error, OSError, ValueError) as e:
        print(f"evp.llama: {e}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
