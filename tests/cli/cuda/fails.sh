# A device that fails in the middle ends the run with a sentence and status 1; what was done stays, and the same command
# goes on with the rest. The answers are those of a run without a failure, and of the CPU.
. "$TOP/tests/cli/cuda/device.inc"
profile --backend cuda -o whole.h5
profile --backend cpu -o cpu.h5
answers whole.h5 >whole
answers cpu.h5 | cmp - whole
EMU_FAIL=launch:1200:214 profile --backend cuda -o p.h5
[ "$(ls p.h5.d)" ] || echo 'nothing of it stayed'
profile --backend cuda -o p.h5
answers p.h5 | cmp - whole
EMU_FAIL=copy:80:700 profile --backend cuda -o other.h5
EMU_FAIL=wait:70:719 profile --backend cuda -o third.h5
# Memory that is used up costs the context that needed it, not the next one.
EMU_FAIL=copy:140:2 profile --backend cuda -o fourth.h5
