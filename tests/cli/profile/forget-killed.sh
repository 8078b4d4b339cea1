# Runs that forget are killed at random moments: no context that should stay is lost, and those that should leave do.
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip "no h5py"
/usr/bin/python3 "$TOP/tests/cli/profile/forget-killed.py" "$DATA/tiny.gguf"
