# The tables of tests/bench/roofline.md are those that tests/bench/roofline.py prints now.
"$TOP/tests/bench/roofline.py" --check "$TOP/tests/bench/roofline.md"
status=$?
rows=$(sed -n 's/^ *PASS_ROWS = \([0-9]*\),.*/\1/p' "$TOP/kernels/cuda/cuda.cu")
grep -q "; $rows tokens a pass" "$TOP/tests/bench/roofline.md" || { echo "kernels/cuda/cuda.cu has passes of $rows tokens, tests/bench/roofline.md not" >&2; status=1; }
exit $status
