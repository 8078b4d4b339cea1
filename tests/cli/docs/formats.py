"""formats.py TOP BUILD - the examples in docs/formats/ against the tools that write and read these files.

A page's example is a fenced block whose first line is ```LANGUAGE KIND. For each example: the real reader takes it;
without any one of the fields that the page's tables call required, and with that field turned into another type, the
reader refuses it; null in place of any other text or number counts as its absence; every field in it is in the tables
of its page, and every field of the tables is in an example. What the tools write today has no other fields than the
example. Runs in a scratch folder.
"""
import copy, json, os, re, shutil, struct, subprocess, sys
from pathlib import Path

top, build = Path(sys.argv[1]), Path(sys.argv[2])
data = top / "tests/data"
failed = 0

def complain(what):
    global failed
    failed += 1
    print(what, file=sys.stderr)

def run(*args, **more):
    p = subprocess.run([str(a) for a in args], capture_output=True, text=True, stdin=subprocess.DEVNULL, **more)
    return p.returncode, p.stdout + p.stderr

# ---- readers: kind -> status and message of the tool that reads such a file ------------------------------------------

def read_show(path):
    return run("evp-show", "--check", path)

def read_receipt(path):
    """With --check the payloads in the tiers would be checked, too."""
    return run("evp-show", path)

def read_access(path):
    return run("evp-plan", "-q", data / "table.h5", "--tiers", data / "tiers.json", "--access", path)

def read_cells(path):
    """evp-profile reads the list before it looks for the model."""
    Path("c.jsonl").write_text('{"id":"a","text":"The fox jumps.","ask":" {question}"}\n')
    Path("q.jsonl").write_text('{"id":"a1","context":"a","split":"test","text":"Who?"}\n{"id":"a0","context":"a","split":"train","text":"What?"}\n'
                                   '{"id":"a2","context":"a","split":"train","text":"Whom?"}\n')
    return run("evp-profile", "-q", "c.jsonl", "q.jsonl", "--cells", path, "--model", data / "tiny.gguf", "--dry-run",
               "-o", "cells.h5")

def read_rules(path):
    return run("evp-plan", "-q", data / "table.h5", "--tiers", data / "tiers.json", "--rules", path)

def read_payload(path):
    header = path.read_bytes().strip()
    header += b" " * (-len(header) % 8)
    payload = Path("example.safetensors")
    payload.write_bytes(struct.pack("<Q", len(header)) + header + bytes(max(map(int, re.findall(rb'"data_offsets":\[\d+,(\d+)\]', header)), default=520)))
    return read_show(payload)

def read_part(path):
    """evp-qgen takes its answers from there: no service is at this address, and none is needed."""
    context = {"id": "note", "text": "KV caches are reused. A cache of 2239 tokens takes 49 MiB."}
    Path("c.jsonl").write_text(json.dumps(context) + "\n")
    shutil.copy(path, "q.jsonl.part")
    Path("q.jsonl").unlink(missing_ok=True)
    return run("evp-qgen", "-q", "c.jsonl", "--api-base", "http://127.0.0.1:9/v1", "--model", "m", "--per-context", "2",
               "--retries", "0", "-o", "q.jsonl")

def read_nightly(path):
    Path("requests.log").touch()
    return run("evp-nightly", "--config", path, "--dry-run")

readers = dict(contexts=read_show, questions=read_show, tiers=read_show, times=read_show, manifest=read_show, receipt=read_receipt,
               access=read_access, cells=read_cells, rules=read_rules, drift=read_show, payload=read_payload, part=read_part,
               nightly=read_nightly)

# ---- writers: kind -> a file that a tool has just written -------------------------------------------------------------

def load_world(folder):
    """Two tiers, two payloads and a manifest, by tests/tools/make-load."""
    shutil.rmtree(folder, ignore_errors=True)
    for tier in "dram", "ssd":
        os.makedirs(f"{folder}/{tier}", mode=0o700)
    here = Path(folder).resolve()
    plan = (f"tier dram dram {here}/dram 60000\ntier ssd file {here}/ssd 100000\ncontext a1 100 none dram\n"
            "context a2 50 knorm:drop=0.5 ssd\ncontext e1 10 none recompute\n")
    subprocess.run([build / "tests/tools/make-load", "m.jsonl", "pay"], cwd=folder, input=plan, text=True, check=True)
    return here

def make(*args, **more):
    status, said = run(*args, **more)
    if status:
        sys.exit(f"{' '.join(map(str, args))} ends with {status}: {said}")

def written():
    Path("note.txt").write_text("KV caches are reused. A cache of 2239 tokens takes 49 MiB. It lies in memory or on a disk.")
    Path("rules.jsonl").write_text('{"context":"c1","min_quality":0.8}\n{"context":"c2","tier":"ssd"}\n')
    make("evp-import", "-q", "note.txt", "--model", data / "tiny.gguf", "-o", "contexts.jsonl")
    make("evp-qgen", "-q", "contexts.jsonl", "--per-context", "2", "-o", "questions.jsonl")
    make("evp-tiers", "-q", "--tier", "name=a,uri=redis://b:1,read=1G,write=1G,latency=0.1", "-o", "tiers.json")
    make("evp-plan", "-q", data / "table.h5", "--tiers", data / "tiers.json", "--rules", "rules.jsonl", "--online",
        "--min-quality", "0.5", "-o", "manifest.jsonl")
    make("evp-plan", "-q", data / "table.h5", "--tiers", data / "tiers.json", "--alpha", "0,0.1,1", "-o", "sweep")
    load_world("world")
    make("evp-load", "-q", "m.jsonl", "--payloads", "pay", cwd="world")
    payload = next(Path("world/pay").glob("a1-*")).read_bytes()
    Path("payload").write_bytes(payload[8:8 + struct.unpack("<Q", payload[:8])[0]])
    return dict(contexts="contexts.jsonl", questions="questions.jsonl", tiers="tiers.json", manifest="manifest.jsonl",
                receipt="world/m.jsonl.receipt", payload="payload")

# ---- pages -------------------------------------------------------------------------------------------------------------

class Absent(str):
    """When a field is absent, and the field's type."""

def tables(text):
    """[(what it is a table of, {field: when absent})] of the tables with a column 'when absent'."""
    found = []
    for head, body in re.findall(r"^\| (field[^|]*) \|[^\n]*when absent[^\n]*\n\| --- [^\n]*\n((?:\|[^\n]*\n)*)", text, re.M):
        rows = {}
        for line in body.splitlines():
            cells = [c.strip() for c in line.strip("|").split(" | ")]
            for name in re.findall(r"`([^`]+)`", cells[0]):
                rows[name] = Absent(cells[2])
                rows[name].type = cells[1]
        found.append((head, rows))
    return found

def examples(text):
    return re.findall(r"^```\S+ (\w+)\n(.*?)^```$", text, re.M | re.S)

def values(kind, text):
    """The JSON values of an example, one per line or one in all."""
    return [json.loads(text)] if kind in ("tiers", "times", "payload", "nightly") else [json.loads(line) for line in text.splitlines()]

FREE = {"from", "args", "checksums", "prices", "options"}  # what is in them is not described field by field

def names(value, kind):
    if isinstance(value, list):
        return set().union(*(names(v, kind) for v in value)) if value else set()
    if not isinstance(value, dict):
        return set()
    if kind == "payload":
        meta = value["__metadata__"]
        return set(meta) | names(json.loads(meta.get("cache", "{}")), "cache")
    inner = [names(v, kind) for k, v in value.items() if k not in FREE | {"api"}]
    return set(value).union(*inner)

def put(kind, text, path):
    path.write_text("".join(json.dumps(v) + "\n" for v in text))

def objects(kind, value):
    """Every object of a value whose fields the tables describe."""
    if isinstance(value, list):
        for v in value:
            yield from objects(kind, v)
    elif isinstance(value, dict):
        if kind == "payload":
            yield value["__metadata__"]
            return
        yield value
        for k, v in value.items():
            if k not in FREE:
                yield from objects(kind, v)

SCALARS = {"text", "int", "real", "digest", "checksum"}

def best_table(thing, described):
    """The fields of the table that describes an object best."""
    fields = set(thing)
    return max((rows for _, rows in described), key=lambda rows: len(fields & set(rows)) - len(fields - set(rows)))

def required_of(thing, described):
    spared = {f"required, except with `{field}`" for field in thing}
    required = {f for f, absent in best_table(thing, described).items() if absent.startswith("required") and absent not in spared}
    return sorted(required | {"version"} if "evp" in thing else required)

def optional_of(thing, described):
    """The fields of an object for which null must count as absence."""
    rows = best_table(thing, described)
    return [f for f in thing if f in rows and rows[f].type in SCALARS and not rows[f].startswith("required") and f != "evp"]

def with_nulls(kind, parsed, described):
    if kind == "payload":
        return  # metadata of safetensors files are texts and nothing else
    for at, thing in enumerate(objects(kind, parsed)):
        for field in optional_of(thing, described):
            good = copy.deepcopy(parsed)
            list(objects(kind, good))[at][field] = None
            yield f"{field} null in object {at}", good

def mutants(kind, parsed, described):
    """(what was done, the example after it) for each required field of each object."""
    for at, thing in enumerate(objects(kind, parsed)):
        for field in required_of(thing, described):
            for change in "removed", "of another type":
                if field not in thing or (field == "evp" and change == "removed" and kind == "payload"):
                    continue  # without "evp" it is a file of another kind
                bad = copy.deepcopy(parsed)
                target = list(objects(kind, bad))[at]
                if change == "removed":
                    del target[field]
                else:
                    target[field] = {}
                yield f"{field} {change} in object {at}", bad

def check_example(where, kind, text, described):
    path = Path(f"example.{kind}")
    path.write_text(text)
    status, said = readers[kind](path)
    if status:
        return complain(f"{where}: its reader ends with {status}: {said.strip()[:200]}")
    parsed = values(kind, text)
    extra = names(parsed, kind) - {f for _, rows in described for f in rows}
    if extra:
        complain(f"{where}: the tables lack {sorted(extra)}")
    for done, bad in mutants(kind, parsed, described):
        put(kind, bad, path)
        if readers[kind](path)[0] == 0:
            complain(f"{where}: its reader takes it with {done}")
    for done, good in with_nulls(kind, parsed, described):
        put(kind, good, path)
        status, said = readers[kind](path)
        if status:
            complain(f"{where}: its reader refuses it with {done}: {said.strip()[:200]}")

def section_tables(text, kind):
    """streams.md describes four kinds; a kind's tables are those of its own section and of the header's."""
    if "\n## Contexts\n" not in text:
        return tables(text)
    sections = re.split(r"^## ", text, flags=re.M)
    mine = [s for s in sections if s.startswith("Header") or re.search(rf"^```\S+ {kind}$", s, re.M)]
    return [t for s in mine for t in tables(s)]

def check_pages():
    page_tables = lambda name: tables((top / "docs/formats" / name).read_text())
    shared = page_tables("streams.md")[:2] + page_tables("tiers.md")
    made, shown = written(), set()
    for page in sorted((top / "docs/formats").glob("*.md")):
        text = page.read_text()
        every = set()
        for number, (kind, example) in enumerate(examples(text), 1):
            if kind not in readers:
                continue
            where = f"{page.name} example {number} ({kind})"
            check_example(where, kind, example, section_tables(text, kind) + (shared if kind not in ("tiers", "times", "part", "nightly") else []))
            fields = names(values(kind, example), kind)
            more = names(values(kind, Path(made[kind]).read_text()), kind) - fields if kind in made and kind not in shown else set()
            if more:
                complain(f"{where}: what a tool writes has {sorted(more)}, too")
            every |= fields
            shown.add(kind)
        missing = {f for _, rows in tables(text) for f in rows} - every
        if every and missing:
            complain(f"{page.name}: no example has {sorted(missing)}")
    for kind in set(readers) - shown:
        complain(f"no page has an example of {kind}")

def check_frontier():
    (kind, example), = examples((top / "docs/formats/frontier.md").read_text())
    if Path("sweep/frontier.tsv").read_text() != example:
        complain("frontier.md: evp-plan writes another frontier.tsv than the example")

check_pages()
check_frontier()
sys.exit(failed > 0)
