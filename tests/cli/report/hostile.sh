# Names, questions and answers that look like markup, or like commands of gnuplot and the shell, are text.
command -v gnuplot >/dev/null || skip "gnuplot is not installed"
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip "h5py is not installed"
/usr/bin/python3 "$TOP/tests/cli/report/world.py" table.h5 4 6 hostile
evp-report table.h5 -o page.html
grep -c '<svg' page.html
grep -c '<script' page.html
grep -c '&lt;script' page.html | sed 's/^[1-9].*/some/'
ls
