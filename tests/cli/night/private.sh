# What a night makes of logs that others may not read, others may not read: no word of a prompt, and no payload, is in a file that
# is open to more than its owner, nor in the list of processes. The metrics and the plan are open, and no name in them tells a prompt (--hash-ids). A tool by
# itself makes files that are as open to its group as what it read, and never open to all.
. "$TOP/tests/cli/night/night.inc"
use_tiers "$dram,$ssd"
sed -i 's/"--half-life","72"/&,"--hash-ids"/; s/"budget_s":0/"budget_s":600/' nightly.json
python3 - <<-'END' &
	import glob, time
	seen = set()
	while True:
	    for path in glob.glob("/proc/[0-9]*/cmdline"):
	        try:
	            words = open(path, "rb").read().split(b"\0")
	        except OSError:
	            continue
	        if b"evp-" in words[0] and tuple(words) not in seen:
	            seen.add(tuple(words))
	            with open("processes", "ab") as f:
	                f.write(b" ".join(words) + b"\n")
	    time.sleep(0.002)
END
watch=$!
for n in 1 2; do
	umask 077 && begin_night && umask 022 && run_night || cat night.log
done
kill $watch
grep -o '^[^ ]*evp-[a-z]*' processes | sed 's@.*/@@' | sort -u | grep -c 'import\|profile\|pack\|load'
grep -c -e section -e 'What is' processes
find world -type f -perm /077 | sort
find world -type f -perm /077 -exec grep -l -e section -e 'What is' {} +
grep -c -e section -e 'What is' night.log
for mode in 644 640 600; do
	cp world/requests.log.1 log && chmod $mode log
	evp-import --requests -q log $model --min-tokens 64 -o from-$mode
	rm -rf c.jsonl q.jsonl && cp from-$mode/contexts.jsonl c.jsonl && cp from-$mode/questions.jsonl q.jsonl && chmod $mode c.jsonl
	evp-profile c.jsonl q.jsonl $model --max-new-tokens 1 --configs none,knorm:drop=0.5 -q -o p-$mode.h5 2>said || cat said
	evp-score -q p-$mode.h5 --prefill-tokens-per-s 10 -o t-$mode.h5 2>said || cat said
	evp-plan -q t-$mode.h5 --tiers world/tiers.json --alpha 10 -o m-$mode.jsonl
	evp-pack -q m-$mode.jsonl c.jsonl $model -o pay-$mode 2>said || cat said
	evp-report -q t-$mode.h5 m-$mode.jsonl -o r-$mode.html
	stat -c '%a %n' from-$mode from-$mode/* p-$mode.h5 t-$mode.h5 r-$mode.html pay-$mode
	stat -c '%a payload' pay-$mode/*.safetensors | sort -u
done
