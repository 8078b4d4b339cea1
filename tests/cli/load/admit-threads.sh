# Four threads on one plan of the library; what they leave is whole. `make CONFIG=tsan check-cli` looks for races in it:
# there the planner's own threads, whose barriers ThreadSanitizer does not know, are left out.
case $BUILD in *tsan) export OMP_NUM_THREADS=1 ;; esac
evp-plan -q "$DATA/table.h5" --tiers "$DATA/tiers.json" --alpha 2 --online -o m.jsonl
"$BUILD/tests/tools/admit-threads" m.jsonl next.jsonl && evp-show --check next.jsonl
