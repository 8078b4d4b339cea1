# The adapters that serve by content hashes, without LMCache and SGLang: what is hashed and what a refresh opens, rows
# in the engines' layouts, and what must miss.
. "$TOP/tests/cli/load/python.inc"
load() { # NAME <CONTEXTS
	{
		echo "model Org/tiny 2 3 64"
		echo "tier dram dram $PWD/dram 100000000"
		sed 's/^/context /'
	} | "$BUILD/tests/tools/make-load" plan.jsonl pay && evp-load -q plan.jsonl --payloads pay
}
case $1 in
second)
	load <<-END
		a2 150 none dram
		b1 130 none dram
		d1 70 none dram
	END
	exit
	;;
esac
load <<-END || exit
	a1 100 none dram
	a2 150 none dram
	b1 130 kivi:bits=4 dram
	c1 90 knorm:drop=0.5 dram
END
export BUILD TOP
"$python" "$TOP/tests/cli/load/placed.py" plan.jsonl "$TOP/tests/cli/load/placed.sh"
