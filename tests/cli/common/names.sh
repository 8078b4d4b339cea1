# A long option is given by its whole name, once; near misses are answered; in every tool.
python3 "$TOP/tests/cli/common/names.py" "$BUILD"
