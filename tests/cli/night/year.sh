# The short form of tests/bench/year: three weeks of nights with kills, faults, drift, churn and another model end with the plan of a fresh
# installation.
/usr/bin/python3 -c 'import h5py' 2>import.log || skip "python3-h5py is not installed"
TMPDIR=$PWD /usr/bin/python3 "$TOP/tests/bench/year" "$BUILD" 22 2>year.log | sed 's/ in [0-9]* s; .*//; /^state /d'
