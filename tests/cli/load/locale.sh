# A host of the library may have a locale in which 1.5 is "1,5"; the plan that it saves has points all the same.
localedef -i de_DE -f UTF-8 ./de_DE.UTF-8 2>locale.log || skip "no locale to test with: $(tail -n 1 locale.log)"
evp-plan -q "$DATA/table.h5" --tiers "$DATA/tiers.json" --online -o m.jsonl
LOCPATH=$PWD LC_ALL=de_DE.UTF-8 "$BUILD/tests/tools/admit-threads" m.jsonl next.jsonl && evp-show --check next.jsonl
