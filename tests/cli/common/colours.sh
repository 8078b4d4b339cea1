# No tool prints an escape sequence, whatever the environment says of colours; on a terminal, progress erases its line.
python3 "$TOP/tests/cli/common/colours.py" "$BUILD"
