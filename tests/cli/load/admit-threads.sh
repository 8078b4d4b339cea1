# Four threads on one plan of the library; what they leave is whole. `make check-tsan` looks for races in it.
# ThreadSanitizer does not know the barriers of OpenMP, so under it the planner has one thread.
case $BUILD in *tsan) export OMP_NUM_THREADS=1 ;; esac
evp-plan -q "$DATA/table.h5" --tiers "$DATA/tiers.json" --alpha 2 --online -o m.jsonl
"$BUILD/tests/tools/admit-threads" m.jsonl next.jsonl && evp-show --check next.jsonl
