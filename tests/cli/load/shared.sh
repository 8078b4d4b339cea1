# Contexts with the same tokens share one object: it is written once, counted for each, and stays until the last one goes.
. "$TOP/tests/cli/load/plans.inc"
seq 1000 1500 >ids
shared_plan() {
	{
		echo "tier dram dram $PWD/dram 200000"
		echo "tier ssd file $PWD/ssd 200000"
		echo "ids ids - - -"
		sed 's/^/context /'
	} | "$BUILD/tests/tools/make-load" "$1.jsonl" pay
}
look() {
	placed
	for tier in dram ssd; do
		echo "$tier: $(payloads $tier) files for $(rows $tier | wc -l) payloads, $(evp-show --check $tier)"
	done
}
damaged() {
	evp-load -q "$@" m.jsonl --payloads pay 2>said
	echo "status $?: $(grep -c "missing\|is damaged" said) damaged or missing"
}
shared_plan first <<-END
	x 100 none dram
	y 100 none dram
	z 100 none dram
	v 200 none dram
	w 100 none ssd
END
shared_plan m <<-END
	y 100 none ssd
	z 100 none dram
	v 200 none recompute
	w 100 kivi:bits=2 ssd
END
evp-load first.jsonl --payloads pay || exit
look
echo 'next:'
evp-load m.jsonl --payloads pay || exit
look
echo 'back:'
evp-load -q --rollback m.jsonl --payloads pay || exit
look
# what one context lost, all have lost; what makes it whole for one, does so for all
cp first.jsonl m.jsonl
printf 'x' | dd of="$(file dram x none)" bs=1 seek=9000 conv=notrunc 2>dd.log
damaged
damaged --dry-run --verify
damaged --verify
look
rm "$(file dram z none)"
damaged
look
