# A folder: sorted, hidden files and links passed over, files that are not text reported while the rest goes on.
mkdir -p d/b d/.hidden
printf 'Zebra.' >d/z.txt
printf 'Antelope.' >d/a.md
printf 'Bee, second of its name.' >d/b/a.txt
printf 'Caf\351.' >d/latin
printf 'x\0y' >d/binary
: >d/empty.txt
printf 'secret' >d/.hidden/s.txt
printf 'secret' >d/.s.txt
ln -s ../outside d/outside
mkdir outside && printf 'outside' >outside/o.txt
ln -s z.txt d/again.txt
evp-import d
