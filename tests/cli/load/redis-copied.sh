# A folder `state` that was copied: readers may use the copy, but of the writers only those of the copy that changed the
# store last. A writer that is killed while it claims the store, and a server that loses the claim, lock nobody out.
. "$TOP/tests/cli/load/redis.inc"
[ "$python" ] || skip "a sanitizer must be linked into every program"
start
for plan in m:a1:b1 n:b1:c1 o:a1:d1; do
	IFS=: read -r name one two <<-END
		$plan
	END
	printf '%s\n' "$one 100 none far" "$two 100 none far" "e1 100 none dram" | redis_plan "$name"
	sed "s|$PWD/far|$PWD/copy|; s|$PWD/dram|$PWD/dram2|" "$name.jsonl" >"$name.copy"
done
try() {
	evp-load -q "$@" --payloads pay 2>said
	echo "status $?"
	hide <said
}
try m.jsonl
cp -a far copy
echo "the first one goes on:"
try n.jsonl
cp n.jsonl m.jsonl && fetch b c
echo "its copy does not, but the other tier does:"
try o.copy; rows dram2 | grep -c e1
"$python" -c 'import evp; evp.open("m.copy").remove("b1")' 2>&1 | tail -n 1 | hide; fetch b c
echo "ten readers, each with a copy of the index:"
for host in 1 2 3 4 5 6 7 8 9 10; do
	mkdir -m 700 reader && cp far/evp-index reader
	sed "s|$PWD/far\"|$PWD/reader\",\"access\":\"read\"|" n.jsonl >m.jsonl
	try m.jsonl; fetch b c; ls reader
	rm -r reader
done | sort | uniq -c
cp n.jsonl m.jsonl
cli del "$(cli --scan --pattern 'evp:*:claim')" >cli.log
echo "the copy takes over:"
try o.copy; try n.jsonl
rm -r far && mv copy far && try o.jsonl
echo "killed between the folder's claim and the server's:"
cp far/evp-claim before
cli client pause 60000 write >cli.log
timeout -s KILL 1 evp-load -q m.jsonl --payloads pay >>redis.log 2>&1
cli client unpause >cli.log
cmp -s before far/evp-claim || echo "the folder has a new claim, the server $(cli get "$(cli --scan --pattern 'evp:*:claim')" | cmp -s - before || echo not)"
try m.jsonl
echo "a server that has returned to what it was, or has lost everything:"
cli set "$(cli --scan --pattern 'evp:*:claim')" "$(cat before)" >cli.log
try o.jsonl
cli flushall >cli.log
try m.jsonl; where
echo "two copies at once: one of them"
cp -a far copy
cli client pause 60000 write >cli.log
loads=
for plan in o.jsonl n.copy; do
	{ evp-load -q $plan --payloads pay >>redis.log 2>&1; echo $? >status.$plan; } &
	loads="$loads $!"
done
until [ "$(cli info clients | tr -d '\r' | sed -n 's/^blocked_clients://p')" = 2 ]; do sleep 0.05; done
cli client unpause >cli.log
wait $loads
cat status.o.jsonl status.n.copy | sort
for plan in o.jsonl n.copy; do
	evp-load -q $plan --payloads pay >>redis.log 2>&1
	echo $?
done | sort
