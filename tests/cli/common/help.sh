# --help, --usage, --version and misuse of every tool, against its option table.
python3 "$TOP/tests/cli/common/help.py" "$BUILD"
