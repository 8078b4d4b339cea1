# Shapes of GGUF files that cannot be profiled: their keys are enough.
command -v python3 >/dev/null || skip "python3 is not installed"
python3 "$TOP/tests/cli/show/keys.py"
for f in *.gguf; do
    evp-show $f 2>&1 | grep '^evp\|layers\|window \|kv per\|constant\|  32768'
done
