"""live.py BUILD FOLDER N - a live plan of N contexts, of whose 15 configs each could have any: how long evp-plan --online
takes to make it, and evp_plan_open() to open it. Files are in FOLDER, on tmpfs; medians of three. What the computer
does besides makes both slower, so the processors' seconds are beside the clock's.
"""
import ctypes, os, re, resource, subprocess, sys, time

build, folder, n = sys.argv[1], sys.argv[2], sys.argv[3]
table, tiers, manifest = (f"{folder}/{name}" for name in ("table.h5", "tiers.json", "manifest.jsonl"))
configs = 15


def seconds(whose):
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime


def timed(whose, call):
    cpu, start = seconds(whose), time.perf_counter()
    call()
    return time.perf_counter() - start, seconds(whose) - cpu


def make():
    said = subprocess.run([f"{build}/evp-plan", table, "--tiers", tiers, "--online", "-o", manifest], check=True,
                          capture_output=True, text=True).stderr
    steps.append(re.search(r"in ([\d.]+) s, solved in ([\d.]+) s, wrote in ([\d.]+) s", said).groups())


def open_plan():
    plan, error = ctypes.c_void_p(), ctypes.create_string_buffer(516)
    if lib.evp_plan_open(ctypes.byref(plan), manifest.encode(), error):
        sys.exit(f"live.py: evp_plan_open: {error.raw[4:].split(bytes(1))[0].decode()}")
    plans.append(plan)


steps, plans, made, opened = [], [], [], []
lib = ctypes.CDLL(os.path.abspath(f"{build}/libevicpress.so"))
lib.evp_plan_close.argtypes = [ctypes.c_void_p]
subprocess.run([f"{build}/tests/bench/table", n, "1", table, tiers, str(configs)], check=True)
for _ in range(3):
    made.append(timed(resource.RUSAGE_CHILDREN, make))
size = os.path.getsize(manifest)
for _ in range(3):
    opened.append(timed(resource.RUSAGE_SELF, open_plan))
    lib.evp_plan_close(plans.pop())
middle = made.index(sorted(made)[1])
plan, read = made[middle], sorted(opened)[1]
print(f"{n} contexts x {configs} configs: evp-plan --online {plan[0]:.2f} s, {plan[1]:.1f} s of the processors"
      f" (read {steps[middle][0]}, solved {steps[middle][1]}, wrote {steps[middle][2]} s, {size / 1e6:.0f} MB);"
      f" evp_plan_open() {read[0]:.2f} s, {read[1]:.1f} s of the processors; together {plan[0] + read[0]:.2f} s")
