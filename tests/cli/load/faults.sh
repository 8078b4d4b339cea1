# What each operation does while one tier, payload or file fails: a table for docs/serving.md, by tests/cli/load/faults.py.
. "$TOP/tests/cli/load/python.inc"
[ "$(id -u)" = 0 ] && unshare -m true 2>unshare.log || skip "cannot mount disks: $(cat unshare.log)"
cc -O1 -shared -fPIC -o faults.so "$TOP/tests/cli/load/faults.c" && "$python" "$TOP/tests/cli/load/faults.py" ssd
