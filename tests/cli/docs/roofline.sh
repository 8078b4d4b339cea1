# The tables of docs/roofline.md are those that tests/bench/roofline.py prints now.
"$TOP/tests/bench/roofline.py" --check "$TOP/docs/roofline.md"
status=$?
rows=$(sed -n 's/^ *PASS_ROWS = \([0-9]*\),.*/\1/p' "$TOP/kernels/cuda/cuda.cu")
grep -q "; $rows tokens a pass" "$TOP/docs/roofline.md" || { echo "kernels/cuda/cuda.cu has passes of $rows tokens, docs/roofline.md not" >&2; status=1; }
exit $status
