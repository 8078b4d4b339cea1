"""build_wheel.py - makes the wheel of the module, which is pure Python: `pip wheel .` needs only pip."""
import base64, hashlib, os, re, zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TIME = (1980, 1, 1, 0, 0, 0)  # the same files make the same wheel


def version():
    with open(os.path.join(HERE, "evp", "__init__.py"), encoding="utf-8") as f:
        return re.search(r'^__version__ = "(.*)"', f.read(), re.M)[1]


def metadata():
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as f:
        text = f.read()
    head = [
        "Metadata-Version: 2.1",
        "Name: evp",
        f"Version: {version()}",
        "Summary: Finds, fetches and places the KV caches that EvicPress keeps on storage tiers",
        "License: Apache-2.0",
        "Requires-Python: >=3.8",
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(head) + "\n\n" + text


def entry_points():
    """The tables [project.entry-points."GROUP"] of pyproject.toml, as a wheel has them."""
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as f:
        groups = re.findall(r'^\[project\.entry-points\."(.+)"\]\n((?:\w.*\n)+)', f.read(), re.M)
    return "\n".join(f"[{group}]\n" + lines.replace('"', "") for group, lines in groups)


def files():
    info = f"evp-{version()}.dist-info"
    for name in sorted(os.listdir(os.path.join(HERE, "evp"))):
        if name.endswith(".py"):
            with open(os.path.join(HERE, "evp", name), "rb") as f:
                yield f"evp/{name}", f.read()
    yield f"{info}/METADATA", metadata().encode()
    yield f"{info}/entry_points.txt", entry_points().encode()
    yield f"{info}/WHEEL", b"Wheel-Version: 1.0\nGenerator: evp\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name, record = f"evp-{version()}-py3-none-any.whl", []
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(path, data):
            info = zipfile.ZipInfo(path, TIME)
            info.external_attr = 0o644 << 16
            wheel.writestr(info, data)

        for path, data in files():
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}")
            add(path, data)
        path = f"evp-{version()}.dist-info/RECORD"
        add(path, ("\n".join(record + [f"{path},,"]) + "\n").encode())
    return name


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("the module is built from EvicPress' repository: pip wheel contrib/python")
