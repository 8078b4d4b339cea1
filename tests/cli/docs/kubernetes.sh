# The manifests of contrib/: strict YAML, volumes that are mounted exist, the files of the configuration exist and are read,
# and a night's paths are mounted.
/usr/bin/python3 -c 'import yaml' 2>where || skip "python3-yaml is not installed: the manifests are not parsed"
evp-show "$TOP/contrib/kubernetes/base/tiers.json" >tiers || cat tiers
cat >check.py <<'END'
import json, os, sys, yaml

class Strict(yaml.SafeLoader):
    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if len(keys) != len(set(keys)):
            raise yaml.YAMLError(f"a key twice, {node.start_mark}")
        return super().construct_mapping(node, deep)

def pods(value):
    """All objects with containers and volumes."""
    if isinstance(value, dict):
        if "volumes" in value or "extraVolumes" in value:
            yield value
        for inner in value.values():
            yield from pods(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from pods(inner)

def mounts(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from inner if key in ("volumeMounts", "extraVolumeMounts") else mounts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from mounts(inner)

top = sys.argv[1]
base = os.path.join(top, "contrib/kubernetes/base")
n = 0
for folder, _, names in os.walk(os.path.join(top, "contrib")):
    for name in names:
        if name.endswith(".yaml"):
            path, n = os.path.join(folder, name), n + 1
            with open(path, encoding="utf-8") as f:
                value = yaml.load(f, Strict)
            if name == "kustomization.yaml":
                for other in value.get("resources", []) + [x for g in value.get("configMapGenerator", []) for x in g["files"]]:
                    if not os.path.exists(os.path.join(folder, other)):
                        print(f"{path}: no file {other}")
            for pod in pods(value):
                has = {v["name"] for v in pod.get("volumes", pod.get("extraVolumes"))}
                used = {m["name"] for m in mounts(value)}
                if has != used:
                    print(f"{path}: volumes and mounts differ: {sorted(has ^ used)}")
                places = [m["mountPath"] for m in mounts(value)]
                night = json.load(open(os.path.join(base, "nightly.json")))
                tiers = [t["uri"] for t in json.load(open(os.path.join(base, "tiers.json")))["tiers"]]
                logs = [] if name == "values.yaml" else night["logs"] + [night["tiers"]]
                for wanted in [night["model"], night["state"]] + logs + tiers:
                    if not any(wanted == p or wanted.startswith(p + "/") for p in places):
                        print(f"{path}: {wanted} is not mounted")
print(n, "files")
END
/usr/bin/python3 check.py "$TOP"
