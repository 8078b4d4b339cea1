"""python_structs.py FOLDER - the structs of the Python module have the sizes and offsets that a C compiler gives those of
the public headers, and the module knows every function."""
import ctypes, re, subprocess, sys

import evp

header = "".join(open(f"{sys.argv[1]}/{name}").read() for name in ("evicpress.h", "evicpress_plan.h"))
names = {"_Error": "error", "_Prefix": "prefix", "_Options": "options", "_Tier": "tier", "_Location": "location",
         "_Range": "range", "_Put": "put_args", "_Stats": "counters", "_Variant": "variant", "_Context": "context", "_Update": "update", "_Use": "use",
         "_Operation": "operation", "_Operations": "operations", "_PlanTier": "plan_tier", "_PlanState": "plan_state",
         "_Shape": "shape", "_Rows": "rows", "_Encode": "encode"}
lines, want = [], []
for ours, theirs in names.items():
    struct = getattr(evp, ours)
    lines.append(f'printf("{theirs} %zu\\n", sizeof(struct evp_{theirs}));')
    want.append(f"{theirs} {ctypes.sizeof(struct)}")
    for field, *_ in struct._fields_:
        lines.append(f'printf("{theirs}.{field} %zu %zu\\n", offsetof(struct evp_{theirs}, {field}), '
                     f'sizeof(((struct evp_{theirs} *)0)->{field}));')
        want.append(f"{theirs}.{field} {getattr(struct, field).offset} {getattr(struct, field).size}")
with open("sizes.c", "w") as f:
    f.write('#include "evicpress_plan.h"\n#include <stdio.h>\nint main(void) {\n' + "\n".join(lines) + "\nreturn 0; }\n")
subprocess.run(["cc", "-I", sys.argv[1], "sizes.c", "-o", "sizes"], check=True)
got = subprocess.run(["./sizes"], capture_output=True, text=True, check=True).stdout.splitlines()
different = [f"{g} in C, {w} in Python" for g, w in zip(got, want) if g != w]
structs = set(re.findall(r"^struct evp_(\w+) \{", header, re.M)) - set(names.values())
functions = set(re.findall(r"\b(evp_\w+)\(", re.sub(r"/\*.*?\*/", "", header, flags=re.S)))
known = set(evp._ARGUMENTS) | set(evp._CLOSERS) | {"evp_version", "evp_message", "evp_open", "evp_payload_text"}
print("\n".join(different + [f"unknown: {n}" for n in sorted(structs | functions - known)]) or f"{len(names)} alike")
