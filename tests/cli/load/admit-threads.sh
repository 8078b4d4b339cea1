# Four threads on one plan of the library; what they leave is whole. `make check-tsan` looks for races in it.
evp-plan -q "$DATA/table.h5" --tiers "$DATA/tiers.json" --alpha 2 --online -o m.jsonl
"$BUILD/tests/tools/admit-threads" m.jsonl next.jsonl && evp-show --check next.jsonl
