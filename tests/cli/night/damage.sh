# A file of the state folder that is cut, empty, garbage, gone or a folder costs itself at most: the night after makes a plan, with
# a warning and status 1 where it put the file aside, and the one after that has nothing left to say. The files are those that are
# there after two nights with a budget. Without EVP_TEST=all each is damaged in one way, the next file in the next one.
. "$TOP/tests/cli/night/night.inc"
use_tiers "$dram,$ssd"
sed -i 's/"budget_s":0/"budget_s":600/' nightly.json
nights 2 >nights.log
damage() { # FILE WAY
	case $2 in
	cut) truncate -s $(($(stat -c %s "$1") / 2)) "$1" ;;
	empty) : >"$1" ;;
	garbage) head -c 300 /dev/zero | tr '\0' 'x' >"$1" ;;
	gone) rm "$1" ;;
	folder) rm "$1" && mkdir "$1" ;;
	file) rm -r "$1" && : >"$1" ;;
	esac
}
status() { begin_night && evp-nightly --config nightly.json >night.log 2>&1; echo $?; }
try() { # FILE WAY
	rm -rf world && cp -a base world && last=2
	damage "world/$1" "$2"
	want=0
	case $1:$2 in
	*:gone) ;;
	*:folder | *:file | profile.h5*:* | table.h5:* | manifest.jsonl:* | drift.jsonl:*) want=1 ;;
	esac
	[ "$(status)" = $want ] || { echo "$1, $2: the status of that night is not $want" && cat night.log; }
	[ $want = 0 ] || { [ -e "world/$1.damaged" ] && grep -q "warning: '$1' is damaged" night.log; } || echo "$1, $2: it was not put aside"
	found | sed "s/^/$1, $2: that night /"
	[ "$(status)" = 0 ] || { echo "$1, $2: the status of the next night is not 0" && cat night.log; }
	{ found && evp-show --check $checked; } | grep -v ': ok$' | sed "s/^/$1, $2: the next night /"
}
ways="cut empty garbage gone folder"
files=$(cd base && find * -type f ! -name 'requests*' ! -name tiers.json ! -name lock ! -name nightly.prom ! -path 'disk/*' ! -path 'dram/*' ! -path 'nights/*' \
	! -path 'payloads/*' | sort)
for file in $files; do
	for way in $ways; do
		try "$file" "$way"
		[ "${EVP_TEST-}" = all ] || break
	done
	[ "${EVP_TEST-}" = all ] || ways="${ways#* } ${ways%% *}"
done
try mine file
try payloads file
echo $files
