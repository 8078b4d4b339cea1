# One letter, one long option; one long option, one letter and one sentence: in all tools.
python3 "$TOP/tests/cli/common/options.py" "$BUILD"
