# Slot files of llama-server: written as the server itself wrote those of tests/data/slots; damaged ones are refused.
. "$TOP/tests/cli/load/python.inc"
"$python" "$TOP/tests/cli/load/slots.py" "$DATA/slots"
