"""lmcache_engine.py - `lmcache server` with the plugin evp.lmcache, and an engine's side made of LMCache's own classes,
for the parts of this oracle."""
import itertools, json, os, socket, subprocess, sys, tempfile, time, urllib.error, urllib.request

import torch, zmq
from lmcache.utils import EngineType
from lmcache.v1.multiprocess.custom_types import IPCCacheServerKey
from lmcache.v1.multiprocess.group_view import EngineGroupInfo
from lmcache.v1.multiprocess.transfer_context import create_transfer_context
from lmcache.v1.multiprocess.transport.factory import RequestClientFactory

MODEL, CHUNK, BLOCK, LAYERS, HEADS, DIM = "Org/smol", 256, 16, 30, 3, 64


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


_instances = itertools.count()


class Server:
    """`lmcache server` with one L2 adapter, ours."""

    def __init__(self, manifest, digest, **params):
        self.port, self.http_port = free_ports(2)
        spec = {"type": "plugin", "module_path": "evp.lmcache", "class_name": "EvpL2Adapter",
                "adapter_params": {"manifest": manifest, "model": MODEL, "model_digest": digest, "lora": "none",
                                   **params}}
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            ["lmcache", "server", "--host", "127.0.0.1", "--port", str(self.port), "--http-port", str(self.http_port),
             "--chunk-size", str(CHUNK), "--l1-size-gb", "1", "--l1-init-size-gb", "1", "--eviction-policy", "LRU",
             "--supported-transfer-mode", "auto", "--disable-metrics", "--l2-adapter", json.dumps(spec)],
            stdout=self.log, stderr=subprocess.STDOUT)

    def __enter__(self):
        for _ in range(200):
            try:
                if self.http("GET", "/healthcheck")[0] == 200:
                    return self
            except OSError:
                time.sleep(0.5)
            if self.process.poll() is not None:
                break
        self.log.seek(0)
        sys.exit("the server ended: " + self.log.read()[-2000:])

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def http(self, method, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.http_port}{path}", method=method,
                                         data=json.dumps(body).encode() if body else None,
                                         headers={"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def prefetch(self, tokens, ranks, salt="", model=MODEL):
        """Keys found and asked for, by LMCache's own count; the warm-up of docs/serving.md."""
        status, job = self.http("POST", "/cache/prefetches", {
            "model_name": model, "world_size": ranks, "token_ids": tokens, "cache_salt": salt, "source_tier": "l2",
            "target_tier": "l1"})
        while status in (200, 202):
            status, job = self.http("GET", "/cache/prefetches/" + job["request_id"])
            if status == 200 and job["status"] == "completed":
                return job["found_keys"], job["total_keys"]
            time.sleep(0.05)
        return status, job


class Rank:
    """The side of one rank of an engine: paged tensors of every layer, in blocks of an order of its own."""

    def __init__(self, server, rank, ranks, model=MODEL, heads=HEADS, name="r"):
        self.name = name
        self.rank, self.ranks, self.model, self.heads = rank, ranks, model, heads // ranks
        self.context = zmq.Context()
        self.context.setsockopt(zmq.LINGER, 0)
        self.client = RequestClientFactory.create(f"tcp://127.0.0.1:{server.port}", context=self.context)
        self.pages = {f"layer.{i}": torch.zeros(2, 140, BLOCK, self.heads, DIM, dtype=torch.bfloat16)
                      for i in range(LAYERS)}
        self.blocks = list(range(130, 0, -1))
        self.transfer = create_transfer_context(self.pages, mode="lmcache_driven", req_client=self.client,
                                                instance_id=os.getpid() * 100 + next(_instances))
        groups = [EngineGroupInfo(engine_group_id=0, layer_indices=tuple(range(LAYERS)), tokens_per_block=BLOCK)]
        self.transfer.register(self.pages, model, ranks, CHUNK // BLOCK, 20.0, layout_hints={"kv_layout": "NHD"},
                               engine_type=EngineType.VLLM, engine_group_infos=groups)

    def key(self, tokens, salt, worker):
        return IPCCacheServerKey(model_name=self.model, world_size=self.ranks, num_kv_readers=1, worker_id=worker,
                                 token_ids=tuple(tokens), start=0, end=len(tokens), cache_salt=salt,
                                 request_id=self.name + salt)

    def lookup(self, tokens, salt=""):
        """Leading chunks that LMCache finds."""
        self.client.lookup(self.key(tokens, salt, None), self.ranks).result(timeout=60)
        while True:
            hit = self.client.query_prefetch_status(self.name + salt).result(timeout=60)
            if hit is not None:
                return hit
            time.sleep(0.02)

    def retrieve(self, tokens, salt=""):
        """[K and V, layers, tokens, heads, dim] of what LMCache puts into the pages; None: it could not."""
        blocks = self.blocks[:len(tokens) // BLOCK]
        done = self.transfer.submit_retrieve(self.name + salt, self.key(tokens, salt, self.rank), self.pages, [blocks],
                                             self.transfer.create_recorded_event(), CHUNK // BLOCK).result(timeout=60)
        rows = torch.stack([torch.cat([page[:, b] for b in blocks], 1) for page in self.pages.values()], 1)
        return rows.view(torch.uint16).numpy() if done else None

    def end(self, salt=""):
        self.client.end_session(self.name + salt).result(timeout=60)

    def close(self):
        self.transfer.close()
        self.client.close()
