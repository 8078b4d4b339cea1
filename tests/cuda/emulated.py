"""emulated.py - what the scripts of tests/cuda/ share: which tests belong to a .cu file, and runs of them on the emulated
device.

The Makefile hands over how it compiles: EMU (where it builds), EMU_CXX, EMU_FLAGS, BUILD (of the tools).
"""
import os, re, resource, signal, subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
EMU, BUILD = TOP / os.environ["EMU"], TOP / os.environ["BUILD"]
# Of a build: how its kernels are compiled, where their objects are, how it is linked.
COMPILED = {"plain": "-fsanitize=alignment,bounds -fno-sanitize-recover=all", "race": "-fsanitize=thread"}
OBJECTS = {"plain": "plain", "race": "tsan"}
LINKED = {"plain": COMPILED["plain"], "race": ""}
# Long tests of bits and of memory, which run kernels that others run too: not under what makes each access slow.
LONG = "kernels/@(*_do_not_know_each_other|attend_in_little_memory|best_reports_rows*|gemm_of_any_width)"
JOBS = int(os.environ.get("JOBS", os.cpu_count() or 1))

# Tests of the file: a pattern of suite/name.
TESTS = {
    "cuda": "backend/*",
    "cuda_memory": "backend/*",
    "cuda_choose": "kernels/@(gemm|gemm_rows_do_not_know_each_other|weights_*)",
    "cuda_gemm": "kernels/@(gemm|gemm_rows_do_not_know_each_other|weights_*)",
    "cuda_attend": "kernels/@(attend*|merged*)",
    "cuda_attend_list": "kernels/@(attend*|merged*)",
    "cuda_attend_plain": "kernels/@(attend*|merged*)",
    "cuda_attend_tensor": "kernels/@(attend*|merged*)",
    "cuda_attend_wgmma": "kernels/@(attend*|merged*)",
    "cuda_columns": "kernels/column*",
    "cuda_rows": "@(backend/@(memory|repeats*)|kernels/@(rows*|rope*|copy*|repeat*|operands*))",
    "cuda_best": "kernels/@(best|best_by_hand|best_reports*|best_rows_do_not_know_each_other|draw_*)",
    "cuda_scores": "kernels/@(key_*|avg_pool*|scale_columns*|column_sums_are_the_rows)",
    "cuda_moments": "kernels/@(moments*|forms_*|abs_sums*|operands*)",
    "cuda_select": "kernels/@(top_k*|joint_counts*|gather*)",
    "cuda_quantise": "kernels/quantise*",
    "cuda_moe": "kernels/@(moe|moe_by_hand|moe_rows_do_not_know_each_other)",
    "cuda_expert": "kernels/@(moe|moe_by_hand|moe_rows_do_not_know_each_other)",
    "cuda_bert": "kernels/@(gelu*|layernorm*)",
}

# What differs from run to run: thread order, and when asynchronous copies happen.
MODES = [("forward", "late"), ("reverse", "eager"), ("random:1", "random")]


def files():
    """Base names of all .cu files."""
    names = sorted(path.stem for path in (TOP / "kernels/cuda").glob("*.cu"))
    for name in names:
        if name not in TESTS:
            raise SystemExit(f"tests/cuda/emulated.py does not say which tests belong to {name}.cu")
    return names


def environment(plugin, mode):
    return dict(os.environ, EVP_CUDA_PLUGIN=str(plugin), EVP_TEST_BACKEND="cuda", EMU_ORDER=mode[0], EMU_ASYNC=mode[1],
                OMP_NUM_THREADS="1", TSAN_OPTIONS="atexit_sleep_ms=0:halt_on_error=1:exitcode=66",
                ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1")


def run_tests(plugin, tests, mode, sanitizer="plain", seconds=900, **more):
    """(passed, what was said): tests of the kernels and the engine on a plug-in; passed is 0 when one fails. `seconds` are
    of the processor, so that a busy machine does not fail a test. more: of the environment."""
    env = environment(plugin, mode) | more
    if sanitizer != "plain":
        env["DRIVER_WITHOUT"] = LONG
    limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    done = subprocess.run([str(EMU / sanitizer / "driver")] + tests, env=env, preexec_fn=limit,
                          capture_output=True, text=True, errors="replace", cwd=TOP)
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return 0, f"no end after {seconds} s"
    passed = re.search(r"^(\d+) passed", done.stdout, flags=re.M)
    return int(passed[1]) if passed and done.returncode == 0 else 0, done.stdout + done.stderr


def in_parallel(function, items):
    with ThreadPoolExecutor(JOBS) as pool:
        yield from pool.map(function, items)


def build_broken(name, text, folder, sanitizer="plain"):
    """A plug-in in which the file of that name has another text; a sentence when it does not compile."""
    folder.mkdir(parents=True, exist_ok=True)
    source, object_file, plugin = folder / f"{name}.cu", folder / f"{name}.{sanitizer}.o", folder / f"{sanitizer}.so"
    source.write_text(text)
    cxx, flags = os.environ["EMU_CXX"].split(), os.environ["EMU_FLAGS"].split() + COMPILED[sanitizer].split()
    compiled = subprocess.run(cxx + flags + ["-O1", "-g0", "-w", "-x", "c++", "-c", str(source), "-o", str(object_file)],
                              capture_output=True, text=True, cwd=TOP)
    if compiled.returncode != 0:
        return None, compiled.stderr
    others = [str(path) for path in sorted((EMU / OBJECTS[sanitizer] / "kernels/cuda").glob("*.o")) if path.stem != name]
    others += [str(path) for path in sorted((EMU / sanitizer / "emulated").glob("*.o"))]
    subprocess.run(cxx[-1:] + LINKED[sanitizer].split() + ["-shared", str(object_file)] + others +
                   [str(BUILD / "evicpress.a"), "-Wl,--exclude-libs,ALL", "-lm", "-ldl", "-o", str(plugin)], check=True, cwd=TOP)
    return plugin, ""


def is_found(name, text, folder):
    """How a file with a fault shows, in words; None when it does not."""
    for build, modes in (("plain", MODES[:2]), ("race", MODES[:2])):
        plugin, error = build_broken(name, text, folder, build)
        if not plugin:
            return "does not compile: " + re.search(r"error: (.*)|$", error)[0]
        for mode in modes:
            passed, said = run_tests(plugin, [TESTS[name]], mode, build, seconds=300, DRIVER_STOP="1")
            if not passed:
                return f"{build}, {mode[0]}, {mode[1]}: {first_words(said)}"
    return None


def first_words(said):
    """The line that says most."""
    for pattern in (r"cuda emulator: .*", r"WARNING: ThreadSanitizer.*", r"ERROR: AddressSanitizer.*", r"runtime error: .*",
                    r"FAIL .*", r"no end after.*"):
        match = re.search(pattern, said)
        if match:
            return match[0][:160]
    return said.strip()[-160:]
