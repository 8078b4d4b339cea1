# A device that fails leaves its context to the others, and a sentence; the status is 1. What fits one device only goes to
# that one. When all fail, the run does, and goes on later.
. "$TOP/tests/cli/cuda/device.inc"
same() { "$BUILD/tests/tools/timeless" "$1" t.h5 && cmp t.h5 one.h5; }
profile --backend cuda -o p.h5
"$BUILD/tests/tools/timeless" p.h5 one.h5
export EMU_DEVICES=2
EMU_FAIL_ON=1 EMU_FAIL=alloc:1:2 profile --devices all -o opened.h5 --summary opened.json
same opened.h5
grep -o '"devices.*[0-9]' opened.json
EMU_FAIL_ON=0 EMU_FAIL=launch:1000:214 profile --devices all -o working.h5
same working.h5
EMU_MEMORY=1073741824,56623104 profile --devices all -o small.h5
same small.h5
EMU_MEMORY=56623104 profile --devices all -o none.h5
EMU_FAIL=launch:400:214 profile --devices all -o none.h5
EMU_FAIL=launch:1200:214 profile --devices all -o kept.h5
profile --devices all -o kept.h5
same kept.h5
# A context that fails by itself takes nothing along.
EMU_FAIL_ON=1 EMU_FAIL=copy:50:2 profile --devices 1,0 -o context.h5
"$BUILD/tests/tools/answers" context.h5 | grep -c .
[ ! -e none.h5 ] || echo "a file was written"
