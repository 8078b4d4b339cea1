# Completion as it is installed, in real shells: names, tools, values and files.
make -s -C "$TOP" CONFIG="$(basename "$BUILD")" PREFIX=/usr DESTDIR="$PWD/stage" install-completion >make.log 2>&1 ||
	cat make.log >&2
python3 "$TOP/tests/cli/common/completion.py" "$PWD/stage/usr"
