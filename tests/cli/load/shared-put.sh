# A serving process puts, moves and removes contexts that share an object: it is there while one of them has it.
. "$TOP/tests/cli/load/plans.inc"
. "$TOP/tests/cli/load/python.inc"
seq 1000 1500 >ids
{
	echo "tier dram dram $PWD/dram 60000"
	echo "tier ssd file $PWD/ssd 200000"
	echo "ids ids - - -"
	echo "context x 100 none dram"
	for id in y z u v; do echo "context $id 100 none recompute"; done
} | "$BUILD/tests/tools/make-load" m.jsonl pay
evp-load -q m.jsonl --payloads pay || exit
change() {
	"$python" - "$1" <<-'END' || exit
		import array, evp, glob, sys
		payload = open(glob.glob("pay/*")[0], "rb").read()
		ids = array.array("i", range(1000, 1100))
		with evp.open("m.jsonl", wait_s=0) as store:
		    name, id, *tier = sys.argv[1].split()
		    try:
		        store.put(id, *tier, payload) if name == "put" else getattr(store, name)(id, *tier)
		    except evp.Error as e:
		        print(type(e).__name__, e)
		    found = store.find(ids)
		    if found:
		        print("read:", bytes(store.fetch(found)) == payload)
	END
	echo "$1: dram $(payloads dram) of $(rows dram | wc -l), ssd $(payloads ssd) of $(rows ssd | wc -l), $(evp-show --check dram ssd | paste -s -d ' ')"
}
change 'put y dram'
change 'put z dram'
change 'put u ssd'
change 'remove x'
change 'move y ssd'
# what rots is replaced for all that have it
printf 'x' | dd of="$(file ssd y none)" bs=1 seek=9000 conv=notrunc 2>dd.log
change 'put v ssd'
change 'remove u'
change 'remove v'
change 'remove y'
change 'remove z'
