# --group opens folders and what is in them to one group, from then on; nobody else gets in, and nobody else may write.
. "$TOP/tests/cli/load/plans.inc"
umask 077
group=$(id -gn)
[ "$(id -u)" != 0 ] || group=nogroup
modes() { find dram ssd -printf '%m %g %y %f\n' | sed "s/ $group / GROUP /; s/ $(id -gn) / OWN /; s/ [0-9a-f]\{32\}$/ PAYLOAD/; s/ [0-9a-f][0-9a-f]$/ XX/" | grep -v 'evp-state-' | sort | uniq -c; }
first_plan m
evp-load -q m.jsonl --payloads pay --group nobodys-group
echo "status $?"
evp-load -q m.jsonl --payloads pay && modes
# a folder where others have files stays theirs
echo >ssd/notes
evp-load -q m.jsonl --payloads pay --group "$group" 2>&1
stat -c %a ssd && rm ssd/notes
second_plan m
evp-load -q m.jsonl --payloads pay --group "$group" && modes
# without the option they stay as open as they are
first_plan m
evp-load -q m.jsonl --payloads pay && modes
chmod 770 ssd
evp-load -q m.jsonl --payloads pay 2>&1 | sed "s|$PWD/||"
chmod 750 ssd
[ "$(id -u)" = 0 ] || skip "only root can become another user"
# a member of the group reads, and does not write; the checkout may be where nobody else comes
chmod 711 .
install -m 755 "$BUILD/evp-show" show && install -m 644 "$DATA/tiny.gguf" tiny.gguf
reader() { setpriv --reuid nobody --regid "$1" --clear-groups "$PWD/show" --find prompt --model tiny.gguf "$PWD/ssd" 2>&1 | sed "s|$PWD/||"; }
echo hello >prompt && chmod 644 prompt
reader nogroup | grep "^  placed\|error"
reader daemon
