# Every example in docs/formats/ is taken by its reader, and refused without any of its required fields.
python3 "$TOP/tests/cli/docs/formats.py" "$TOP" "$BUILD"
