# Payloads that are missing, damaged, or not those of the manifest are reported with context and file; nothing changes.
. "$TOP/tests/cli/load/plans.inc"
first_plan m
evp-load -q m.jsonl --payloads pay || exit
second_plan m
state >was
a2=$(cd pay && ls a2-none*)
e1=$(cd pay && ls e1-none*)
cp -r pay good
try() {
	evp-load -q m.jsonl --payloads pay
	echo "status $?"
	state | cmp was -
	rm -r pay && cp -r good pay
}
rm "pay/$a2"; try
printf 'damage' | dd of="pay/$a2" bs=1 seek=9000 conv=notrunc 2>dd.log; try
truncate -s 3000 "pay/$a2"; try
cp "pay/$e1" "pay/$a2"; try
sed 's/"n_tokens":"50"/"n_tokens":"40"/' "pay/$a2" >x && mv x "pay/$a2"; try
sed -i 's/\("id":"a2".*"bytes":\)12800/\112801/' m.jsonl; try
sed -i 's/\("model_digest":"\)0123/\19999/' m.jsonl; try
