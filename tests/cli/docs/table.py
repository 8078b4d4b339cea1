"""table.py TOP - the example in docs/formats/table.md: our reader takes it, and refuses it without any one dataset or
attribute that must be there. Runs in a scratch folder with evp-show in the PATH."""
import re, shutil, subprocess, sys
import h5py

sys.stdout = sys.stderr  # cli/run shows what a failing test says there

page = open(sys.argv[1] + "/docs/formats/table.md").read()
example, = re.findall(r"^```python table\n(.*?)^```$", page, re.M | re.S)
optional = {"/contexts/question_s", "/questions/origin"} | {"backend", "dtype", "lineage", "max_new_tokens", "model", "model_digest"}
failed = 0

def check(path):
    return subprocess.run(["evp-show", "--check", path], capture_output=True, text=True)

exec(example, {})
said = check("profile.h5")
if said.returncode:
    print("evp-show refuses the example:", said.stdout.strip())
    failed = 1
with h5py.File("profile.h5") as f:
    datasets = []
    f.visititems(lambda name, o: datasets.append("/" + name) if isinstance(o, h5py.Dataset) else None)
    attributes = list(f.attrs)
for name in datasets + attributes:
    if f"`{name}`" not in page:
        print("the page does not describe", name)
        failed = 1
    shutil.copy("profile.h5", "less.h5")
    with h5py.File("less.h5", "r+") as f:
        del (f if name.startswith("/") else f.attrs)[name]
    refused = check("less.h5").returncode == 3
    if refused == (name in optional):
        print(f"without {name} the example is", "refused" if refused else "taken")
        failed = 1
sys.exit(failed)
