# A payload that is missing, damaged, or not that of the manifest is reported with context and file. Its context keeps what
# it has, everything else is loaded, and the next load makes up for it.
. "$TOP/tests/cli/load/plans.inc"
first_plan m
evp-load -q m.jsonl --payloads pay || exit
second_plan m
a2=$(cd pay && ls a2-none*)
e1=$(cd pay && ls e1-none*)
cp -r pay good
try() {
	evp-load -q m.jsonl --payloads pay
	echo "status $?"
	placed | tr '\n' ','; echo
	rm -r pay && cp -r good pay
}
rm "pay/$a2"; try
printf 'damage' | dd of="pay/$a2" bs=1 seek=9000 conv=notrunc 2>dd.log; try
truncate -s 3000 "pay/$a2"; try
cp "pay/$e1" "pay/$a2"; try
sed 's/"n_tokens":"50"/"n_tokens":"40"/' "pay/$a2" >x && mv x "pay/$a2"; try
cp m.jsonl was.jsonl
sed -i 's/\("id":"a2".*"bytes":\)12800/\112801/' m.jsonl; try
sed -i 's/\("model_digest":"\)0123/\19999/' m.jsonl; try
mv was.jsonl m.jsonl; try
evp-show --check dram ssd
