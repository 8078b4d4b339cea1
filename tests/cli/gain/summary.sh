# The summary has the figures of the table, and --json all of it.
for i in 1 2 3; do echo "{\"prompt\":\"$(printf 'word %.0s' $(seq 300))$i\",\"time\":$((1700000000 + i))}"; done >log
evp-gain -q log --model synthetic:tiny --gpu L4 --hbm 0 --dram 1M --summary s.json | head -n 5
sed 's/.*"status"/"status"/; s/"seconds":[^,]*,//' s.json
evp-gain -q log --model synthetic:tiny --gpu L4 --hbm 0 --dram 1M --json | tr , '\n' | head -n 12
