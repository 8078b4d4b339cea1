"""build_wheel.py [TREE FOLDER [NAME REQUIREMENT...]] - makes a wheel of the module.

`pip wheel .` needs only pip, and its wheel is pure Python. `make wheel` calls this file with a tree of compiled files:
what lies in TREE/platlib goes beside the module, what lies in TREE/data into the environment's prefix. With a NAME it is
a wheel of the tree alone, for an environment that has the other.
"""
import base64, hashlib, os, re, subprocess, sys, zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TIME = (1980, 1, 1, 0, 0, 0)  # the same files make the same wheel


def version():
    with open(os.path.join(HERE, "evp", "__init__.py"), encoding="utf-8") as f:
        return re.search(r'^__version__ = "(.*)"', f.read(), re.M)[1]


def metadata(name, requirements):
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as f:
        text = f.read()
    head = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version()}",
        "Summary: Finds, fetches and places the KV caches that EvicPress keeps on storage tiers",
        "License: Apache-2.0",
        "Requires-Python: >=3.8",
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(head + [f"Requires-Dist: {other}" for other in requirements]) + "\n\n" + text


def entry_points():
    """The tables [project.entry-points."GROUP"] of pyproject.toml, as a wheel has them."""
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as f:
        groups = re.findall(r'^\[project\.entry-points\."(.+)"\]\n((?:\w.*\n)+)', f.read(), re.M)
    return "\n".join(f"[{group}]\n" + lines.replace('"', "") for group, lines in groups)


def compiled(tree, data="data"):
    """(name in the wheel, path) of every file of the tree."""
    for top, into in (("platlib", ""), ("data", data)):
        root = os.path.join(tree, top)
        for folder, folders, names in os.walk(root):
            folders.sort()
            for name in sorted(names):
                path = os.path.join(folder, name)
                yield os.path.join(into, os.path.relpath(path, root)), path


def tag(tree):
    """For every glibc that has the symbols that the tree's files ask for."""
    newest = 17  # the oldest that is called so
    for _, path in compiled(tree):
        with open(path, "rb") as f:
            if f.read(4) == b"\x7fELF":
                table = subprocess.run(["objdump", "-T", path], stdout=subprocess.PIPE, check=True).stdout.decode()
                newest = max([newest] + [int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", table)])
    return f"py3-none-manylinux_2_{newest}_x86_64"


def files(prefix, name, requirements, tree, tags):
    """(name in the wheel, mode, bytes)."""
    if name == "evicpress":
        for module in sorted(os.listdir(os.path.join(HERE, "evp"))):
            if module.endswith(".py"):
                with open(os.path.join(HERE, "evp", module), "rb") as f:
                    yield f"evp/{module}", 0o644, f.read()
        yield f"{prefix}.dist-info/entry_points.txt", 0o644, entry_points().encode()
    for path, source in compiled(tree, f"{prefix}.data/data") if tree else ():
        with open(source, "rb") as f:
            yield path, os.stat(source).st_mode & 0o777, f.read()
    yield f"{prefix}.dist-info/METADATA", 0o644, metadata(name, requirements).encode()
    pure = "false" if tree else "true"
    yield f"{prefix}.dist-info/WHEEL", 0o644, f"Wheel-Version: 1.0\nGenerator: evp\nRoot-Is-Purelib: {pure}\nTag: {tags}\n".encode()


def write(folder, tree=None, name="evicpress", *requirements):
    tags = tag(tree) if tree else "py3-none-any"
    prefix, record = f"{name.replace('-', '_')}-{version()}", []
    with zipfile.ZipFile(os.path.join(folder, f"{prefix}-{tags}.whl"), "w") as wheel:
        def add(path, mode, data):
            info = zipfile.ZipInfo(path, TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o100000 | mode) << 16
            wheel.writestr(info, data)

        for path, mode, data in files(prefix, name, requirements, tree, tags):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}")
            add(path, mode, data)
        path = f"{prefix}.dist-info/RECORD"
        add(path, 0o644, ("\n".join(record + [f"{path},,"]) + "\n").encode())
    return f"{prefix}-{tags}.whl"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write(wheel_directory)


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("the module is built from EvicPress' repository: pip wheel contrib/python")


if __name__ == "__main__":
    print(os.path.join(sys.argv[2], write(sys.argv[2], sys.argv[1], *sys.argv[3:])))
