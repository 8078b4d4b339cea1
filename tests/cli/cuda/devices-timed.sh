# A sample of a time over two devices: each has begun a context when the time is up. The next run goes on, and the end is as
# without a time.
. "$TOP/tests/cli/cuda/device.inc"
export EMU_DEVICES=2
for time in 0.0001s 0.0001s 1h; do
	profile --devices 0,1 --sample $time -o p.h5 --summary s.json
	grep -o '"contexts":[0-9]*\|"contexts_later":[0-9]*' s.json
done
profile --devices 0,1 -o all.h5
answers all.h5 | sort >all && answers p.h5 | sort | cmp - all && wc -l <all
