# A power cut undoes no folder and no index that readers were shown: what is made or renamed is flushed before anything follows.
case $BUILD in *asan | *tsan) skip "a sanitizer must be the first of all libraries" ;; esac
. "$TOP/tests/cli/load/plans.inc"
first_plan m
second_plan n
FLUSHES=$PWD/flushes
export FLUSHES
load() { LD_PRELOAD=$BUILD/tests/plugins/flushes.so evp-load -q "$@" --payloads pay || exit; }
load m.jsonl
load n.jsonl
load --rollback n.jsonl
# a folder's parent is flushed before it gets an index, and a folder with another index before payloads go
awk -v here="$PWD" '
$1 == "mkdir" { if ($3 !~ /^evp-payloads/) { made++; wait[$2]++ }; next }
$1 == "rename" && $3 == "evp-index" { renamed++; if (wait[here]) print "an index before the flush: " $0; wait[$2]++; next }
$1 == "fsync" { wait[$2] = 0; next }
$1 == "unlink" && $3 ~ /^evp-payloads/ { removed++; if (wait[$2]) print "removed before the flush: " $0 }
END {
	for (folder in wait) if (wait[folder]) print "never flushed: " folder
	print (made == 2 ? "folders are made, " : made " folders, ") (renamed > 3 ? "indexes renamed, " : "") (removed > 1 ? "payloads removed" : "")
}' flushes | sed "s|$PWD/||"
