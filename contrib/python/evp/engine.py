"""evp.engine - what the adapters to serving engines share: what is placed, whether a payload is one of the engine's own
model, and what the adapter was configured with.

A row of another model, or with keys that are rotated differently, gives wrong answers and no error. So an adapter
describes its engine as a Model and asks difference() before it uses a payload.
"""
import collections
import io
import json
import logging
import os
import re
import threading
import time
from concurrent.futures import wait
from types import SimpleNamespace

import evp

logger = logging.getLogger("evp")
_said, _saying = set(), threading.Lock()
METRICS_S = 60    # a file of metrics is written so often
MISSES_S = 3600


def once(sentence):
    """Logs a sentence, the first time."""
    with _saying:
        if sentence not in _said:
            if len(_said) == 1000:  # sentences name payloads
                _said.clear()
            _said.add(sentence)
            logger.warning("evp: %s", sentence)


def settings(given, **more):
    """The adapter's settings, with defaults: `given` is what the engine's configuration has for it, `more` are settings
    of this adapter alone. ValueError: a setting is unknown, or "manifest" is missing."""
    known = {"manifest": None, "name_space": None, "model_name": None, "model_digest": None, "metrics": None, **more}
    for name in given:
        if name not in known:
            raise ValueError(f"evp: unknown setting '{name}' (known: {', '.join(known)})")
    if not given.get("manifest"):
        raise ValueError("evp: the setting 'manifest' is missing")
    return SimpleNamespace(**{**known, **given})


def spread(pool, work, items):
    """Runs work(item) for all items on a pool's threads. Returns the results when the last one has ended, or raises the
    exception of the first that has one."""
    parts = [pool.submit(work, item) for item in items]
    wait(parts)
    return [part.result() for part in parts]


def keeps_all(config):
    """Whether variants of this config keep every token."""
    return "drop=" not in config


class Store:
    """The evp.Store of a manifest that may come later, or go: nothing is placed until it can be read, and what was read
    once stays. Each refresh() tries again."""

    def __init__(self, manifest, name_space=None, metrics=None):
        """metrics: a file that gets its counts once a minute, in which %p is the number of the process."""
        self.at, self.store, self.opening = (manifest, name_space), None, threading.Lock()
        self.refresh()
        if metrics:
            at = metrics.replace("%p", str(os.getpid()))
            threading.Thread(target=self._report, args=(at,), name="evp-metrics", daemon=True).start()

    def refresh(self):
        """Reads changes; returns whether there were any."""
        try:
            with self.opening:
                if not self.store:
                    self.store = evp.open(*self.at)
                    return True
            return self.store.refresh()
        except evp.Error as error:
            once(f"{error}: {'what was read before' if self.store else 'nothing'} is served until it can be read")
            return False

    def _report(self, path):
        while self.at:
            try:
                if self.store:
                    self.store.write_metrics(path)
            except evp.Error as error:
                once(f"no metrics are written: {error}")
            time.sleep(METRICS_S)

    def find(self, tokens):
        return self.store.find(tokens) if self.store else None

    def list(self):
        return self.store.list() if self.store else []

    def payload(self, prefix):
        if not self.store:
            raise LookupError("the manifest cannot be read")
        return self.store.payload(prefix)

    def close(self):
        self.at = None
        if self.store:
            self.store.close()


def open(settings, name_space):
    """A Store with the adapter's settings. Of the namespaces of cache salts no metrics are written."""
    return Store(settings.manifest, name_space, settings.metrics if name_space == settings.name_space else None)


class Misses:
    """Why prompts found nothing, logged once an hour."""

    def __init__(self):
        self.counts, self.since = collections.Counter(), time.monotonic()

    def note(self, reason):
        self.counts[reason] += 1

    def say(self):
        if time.monotonic() - self.since >= MISSES_S:
            if self.counts:
                logger.info("evp: prompts that loaded nothing: %s",
                            ", ".join(f"{n} {reason}" for reason, n in self.counts.most_common()))
            self.__init__()


# ---- models ------------------------------------------------------------------------------------------------


class Model:
    """What an engine says of its model. rope: as in a payload's `cache`; None: this engine cannot say. dtype: the number
    format in which it computes keys and values, "f32", "f16" or "bf16". name: a path or the name on a hub. digest: of
    the model that it is said to be, in place of the name."""

    def __init__(self, n_layers, n_kv_heads, head_dim, rope, dtype, name=None, digest=None):
        self.n_layers, self.n_kv_heads, self.head_dim = n_layers, n_kv_heads, head_dim
        self.rope, self.dtype, self.name, self.digest = rope, dtype, name, digest


def hf_rope(config, head_dim):
    """The rotation of keys out of a configuration of transformers, as in a payload's `cache`; None: none that
    payloads can have."""
    rope = dict(getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {})
    theta = rope.get("rope_theta", getattr(config, "rope_theta", None))
    scaling = rope.get("rope_type", rope.get("type", "default"))
    part = rope.get("partial_rotary_factor", getattr(config, "partial_rotary_factor", None))
    if theta is None or "mrope_section" in rope or scaling in ("longrope", "su"):
        return None  # longrope: engines choose the divisors by the longest text that they allow, not by the context
    out = {"theta": theta, "dims": int(head_dim * (1 if part is None else part)), "scaling": scaling}
    if scaling in ("llama3", "yarn") and rope.get("original_max_position_embeddings") is None:
        rope["original_max_position_embeddings"] = getattr(config, "max_position_embeddings", None)
    rope["beta_fast"], rope["beta_slow"] = rope.get("beta_fast") or 32, rope.get("beta_slow") or 1
    return {**out, **{name: rope.get(name) for name in _SCALING.get(scaling, ())}}


_SCALING = {"linear": ("factor",),
            "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
            "yarn": ("factor", "beta_fast", "beta_slow", "original_max_position_embeddings")}


def _same(a, b):
    """Numbers as JSON may round them, or texts."""
    numbers = isinstance(a, (int, float)) and isinstance(b, (int, float))
    return abs(a - b) <= 1e-6 * abs(a) if numbers else a == b


def _short(name):
    """The part of a path, or of a name on a hub, that names the model: Org/Name, hub/models--Org--Name/snapshots/COMMIT
    and Name.gguf are `name`."""
    cached = re.search(r"models--[^/]*?--([^/]+)/snapshots/", name + "/")
    last = cached.group(1) if cached else name.rstrip("/").rsplit("/", 1)[-1]
    return re.sub(r"\.gguf$", "", last.lower())


def texts(payload, model):
    """What a payload of the engine's own rows says of the model, as a payload of the same model says it."""
    cache = json.loads(payload.text("cache")) | {"dtype": model.dtype}
    return {"model_digest": payload.text("model_digest"), "model_name": payload.text("model_name"), "cache": json.dumps(cache)}


def noted(folder):
    """The digest of a model that a tool of EvicPress has noted in its folder, such as /mnt/models, if its files are still
    those (docs/formats/checkpoints.md); else None."""
    try:
        with io.open(os.path.join(folder, "model.evp-digest"), encoding="utf-8") as note:
            digest, *files = note.read(1 << 20).splitlines()
            written = os.fstat(note.fileno()).st_mtime_ns
        for size, modified, name in (line.split(" ", 2) for line in files):
            now = os.stat(os.path.join(folder, name))
            if (now.st_size, now.st_mtime_ns) != (int(size), int(modified)) or now.st_ctime_ns > written:
                return None
        return digest if files else None
    except (OSError, ValueError):
        return None


def difference(payload, model):
    """Why the payload is not one of the engine's model, as a sentence without full stop; None: it is."""
    cache = json.loads(payload.text("cache") or "null")
    if not cache:
        return "the payload does not say how its keys are rotated: pack it again"
    if cache.get("window"):
        return (f"{len(cache['windowed'])} of the {cache['n_layers']} layers keep a window of {cache['window']} tokens, which "
                f"evp cannot load into this engine")
    for name in ("n_layers", "n_kv_heads", "head_dim"):
        if cache[name] != getattr(model, name):
            return f"payloads have {name} {cache[name]}, the engine's model has {getattr(model, name)}"
    if model.rope is None:
        return "the engine's keys are rotated in a way that payloads do not have"
    for name in ("theta", "dims", "scaling") + _SCALING.get(cache["rope"]["scaling"], ()):
        theirs, ours = cache["rope"].get(name), model.rope.get(name)
        if not _same(theirs, ours):
            return f"payloads have keys rotated with {name} {theirs}, the engine's model has {ours}"
    if cache["dtype"] not in ("f32", model.dtype):
        return f"payloads were computed in {cache['dtype']}, the engine computes in {model.dtype}"
    if model.digest:
        digest = payload.text("model_digest")
        return None if digest == model.digest else f"payloads are of the model with digest {digest}, not {model.digest}"
    name = payload.text("model_name")
    if name and model.name and _short(name) != _short(model.name) and payload.text("model_digest") != noted(model.name):
        return (f"payloads are of the model '{name}', the engine's is '{model.name}': if they are the same, set model_name "
                f"or model_digest")
    return None
