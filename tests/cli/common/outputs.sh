# No tool writes over a file that it reads: under the same name, a hard link or a symbolic link, from standard input, or
# as another of its outputs. Nor does it begin when the output is a folder. Nothing is changed then.
python3 "$TOP/tests/cli/common/outputs.py" "$BUILD"
