# The frontier of a sweep, as evp-plan writes and prints it; and files that are none.
cp "$DATA/table.h5" "$DATA/tiers.json" .
evp-plan table.h5 --tiers tiers.json --alpha 0,2 -o sweep 2>&1 | sed -n '/ alpha  /,$p'
evp-show sweep/frontier.tsv
evp-show --json sweep/frontier.tsv
evp-show --check sweep/frontier.tsv
printf 'alpha\tquality\tquality_test\tttft_s\thits_recompute\n1\t-\tnan\t0.5\t1\n' >unknown.tsv
evp-show unknown.tsv
head -c 70 sweep/frontier.tsv >cut.tsv
printf 'alpha\tquality\tquality_test\tttft_s\n1\t2\n' >short.tsv
printf 'alpha\tquality\tquality_test\tttft_s\n1\t2\t3\tx\n' >word.tsv
printf 'alpha\tquality\tother\tttft_s\n' >other.tsv
evp-show --check cut.tsv short.tsv word.tsv other.tsv
