# Two folders of one pool: a plan fills them, another exchanges their contexts within the pool's capacity, and is undone;
# a plan of more than the pool has is refused before anything is copied.
. "$TOP/tests/cli/load/plans.inc"
# pooled NAME <CONTEXTS: a plan for folders that share 70000 bytes.
pooled() {
	plan "$1" 70000 70000
	sed -i '1s/"capacity_bytes":70000/"pool":"disk",&/g' "$1.jsonl"
}
pooled one <<-END
	a1 100 none dram
	b1 100 none ssd
	c1 60 none ssd
END
evp-load -q one.jsonl --payloads pay || exit
placed
pooled two <<-END
	a1 100 none ssd
	b1 100 none dram
	c1 60 none dram
END
evp-load -q two.jsonl --payloads pay || exit
placed
evp-show --check dram ssd
evp-load -q --rollback two.jsonl --payloads pay || exit
placed
pooled large <<-END
	a1 100 none ssd
	b1 100 none dram
	d1 80 none dram
END
evp-load -q large.jsonl --payloads pay
echo "status $?"
placed
