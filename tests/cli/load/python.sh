# The Python module: a wheel that pip builds without network, structs of evicpress.h's sizes, the example, buffers of numpy and of
# plain Python, forks and multiprocessing with a store that was opened before.
. "$TOP/tests/cli/load/plans.inc"
. "$TOP/tests/cli/load/python.inc"
first_plan m
evp-load -q m.jsonl --payloads pay || exit
echo 'wheel:'
cp -r "$TOP/contrib/python" module
"$python" -m pip --version >/dev/null 2>&1 && {
	"$python" -m pip wheel -q --no-index --no-deps --disable-pip-version-check -w wheel ./module >pip.log 2>&1 || { cat pip.log >&2; exit 1; }
	ls wheel
	grep -q "\"$(sed -n 's/^#define EVICPRESS_VERSION  *"\(.*\)"/\1/p' "$TOP/loader/libevicpress/evicpress.h")\"" module/evp/__init__.py || echo "another version than evicpress.h"
	PYTHONPATH=wheel/$(ls wheel) "$python" -c 'import evp; print(evp.__file__.split("/")[-3:], evp.library_version() == evp.__version__)'
}
echo 'structs:'
"$python" "$TOP/tests/cli/load/python_structs.py" "$TOP/loader/libevicpress" || exit
echo 'example:'
{ seq -s ' ' 97000 97149; seq -s ' ' 98000 98300; seq -s ' ' 99000 99010; } | "$python" "$TOP/contrib/python/examples/fetch.py" m.jsonl
"$python" "$TOP/tests/cli/load/python_use.py" m.jsonl
