# A manifest from a pipe.
. "$TOP/tests/cli/load/plans.inc"
first_plan m
evp-load -q --payloads pay --receipt r <m.jsonl || exit
placed
evp-load m.jsonl --payloads pay --receipt r
second_plan m
evp-load -q --payloads pay <m.jsonl || exit
placed
ls
