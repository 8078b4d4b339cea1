# A refused key ends the run at once: no retry, status 4, nothing on standard output.
. "$TOP/tests/cli/qgen/mock"
ask denied --concurrency 1
status=$?
wc -l <"$log"
exit $status
