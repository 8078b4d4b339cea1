# The table of faults in docs/serving.md is the one that the tests make.
for table in faults redis-faults; do
	grep '^|' "$TOP/tests/cli/load/$table.sh.out"
done | while IFS= read -r row; do
	grep -qxF "$row" "$TOP/docs/serving.md" || echo "docs/serving.md lacks: $row"
done
