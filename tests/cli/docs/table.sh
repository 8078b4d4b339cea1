# The example in docs/formats/table.md is a table, and none without any of its datasets.
for python in python3 /usr/bin/python3; do
	"$python" -c 'import h5py' 2>/dev/null && break
	python=
done
[ "$python" ] || skip "no h5py"
"$python" "$TOP/tests/cli/docs/table.py" "$TOP"
