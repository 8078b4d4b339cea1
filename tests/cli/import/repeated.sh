# Five warnings of a kind, and the last; the others are counted, with -v all are printed. Another kind has five of its own.
for i in 1 2 3 4 5 6 7 8 9; do echo '{"prompt":'; done >log
for i in 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9; do echo '{"prompt":"a","model":"m"}'; done >good
cat log good >both
evp-gain -q both --model synthetic:tiny --gpu L4 --dram 1G --partial 2>&1 >/dev/null
echo '-v:'
evp-gain -v both --model synthetic:tiny --gpu L4 --dram 1G --partial 2>&1 >/dev/null | grep -c malformed
mkdir folder
for i in 1 2 3 4 5 6; do printf '{"id":"%d"}\n' $i >folder/$i.jsonl; done
evp-import -q folder -o out.jsonl 2>&1
exit 0
