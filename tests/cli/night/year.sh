# Thirty nights of tests/bench/year, 365 with EVP_TEST=all: two of three have a fault, kills, damaged files, full and missing disks,
# and contexts, questions and the model change. They end with the plan of a fresh installation.
/usr/bin/python3 -c 'import h5py' 2>import.log || skip "python3-h5py is not installed"
nights=30
[ "${EVP_TEST-}" != all ] || nights=365
TMPDIR=$PWD /usr/bin/python3 "$TOP/tests/bench/year" "$BUILD" $nights 2>year.log | sed 's/^[0-9]* nights in [0-9]* s; .*/well/; /^state /d'
