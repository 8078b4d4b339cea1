# Folders that somebody else may have prepared are refused; what is made is for its user alone; links are not followed.
. "$TOP/tests/cli/load/plans.inc"
try() {
	evp-load -q m.jsonl --payloads pay 2>said
	echo "status $?"
	sed "s|$PWD/||; s/user [0-9]*/user N/g; s|evp-payloads/[0-9a-f/]*|FILE|; s/Not a directory/Too many levels of symbolic links/; s/context 'a[12]'/context N/" said
}
umask 000
first_plan m
mkdir dram && chmod 775 dram; try
chmod 757 dram; try
chmod 700 dram
ln -s /etc/hostname dram/evp-lock; try
rm dram/evp-lock
ln -s "$PWD" dram/evp-payloads; try
rm dram/evp-payloads; try
stat -c '%a %n' dram ssd ssd/evp-* | sed 's/ .*evp-/ evp-/'
find ssd/evp-payloads -type f -perm 600 | wc -l
find ssd/evp-payloads ! -type f ! -perm 700
mv ssd disk && ln -s "$PWD/disk" ssd; try
rm ssd && mv disk ssd
[ "$(id -u)" = 0 ] || skip "only root can give a folder away"
# Another user puts a link to a folder of ours where ours is not yet, as after a reboot.
mv dram mine && ln -s "$PWD/mine" dram && chown -h nobody dram; try
evp-show dram 2>&1 | sed "s|$PWD/||; s/user [0-9]*/user N/g"
chown -h 0 dram; try
rm dram && mv mine dram
chown nobody ssd; try
evp-show ssd 2>&1 | sed 's/user [0-9]*/user N/g' | head -n 3
chown 0 ssd; chmod 757 ssd; evp-show --check ssd
chmod 711 . && chmod 700 ssd
setpriv --reuid nobody --regid nogroup --clear-groups "$BUILD/evp-show" ssd 2>&1
echo "status $?"
