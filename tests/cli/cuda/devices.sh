# Two devices, and more devices than contexts, write the file that one writes. Devices that are not there, that are of
# several kinds, or that are no GPUs are refused.
. "$TOP/tests/cli/cuda/device.inc"
same() { "$BUILD/tests/tools/timeless" "$1" t.h5 && cmp t.h5 one.h5; }
profile --backend cuda -o p.h5
"$BUILD/tests/tools/timeless" p.h5 one.h5
export EMU_DEVICES=4
profile --devices 2,0 -o two.h5 --summary two.json
same two.h5
grep -o '"devices.*[0-9]' two.json
profile --devices all -o four.h5
same four.h5
# Only two more variants.
profile --devices 0,1 --configs knorm:drop=0.5,keydiff:drop=0.5 -o two.h5
profile --backend cuda --configs knorm:drop=0.5,keydiff:drop=0.5 -o p.h5
"$BUILD/tests/tools/timeless" p.h5 one.h5
same two.h5
profile --devices 0,1 --configs knorm:drop=0.5,keydiff:drop=0.5 -o two.h5
same two.h5
for devices in 1,4 -1 1,1 1,x '' 1, all,1; do profile --devices "$devices" -o none.h5; done
EMU_SM=90,80 profile --devices 0,1 -o none.h5
EMU_DEVICES=0 profile --devices all -o none.h5
EMU_DEVICES=driver profile --devices 0 -o none.h5
profile --devices 0 --backend cpu -o none.h5
profile --devices 0 --dry-run
[ "$(echo ./none.h5* ./*.d)" = './none.h5* ./*.d' ] || echo "files were written"
