# --from-metrics: a tier gets the line through enough reads, keeps its latency if the sizes do not differ, or everything.
tier() { echo "{\"name\":\"$1\",\"kind\":\"redis\",\"uri\":\"redis://$1\",\"capacity_bytes\":null,\"read_bytes_per_s\":1e9,\"write_bytes_per_s\":1e9,\"latency_s\":0.001,\"read_spread\":0.5}"; }
echo "{\"evp\":\"tiers\",\"version\":1,\"tiers\":[$(tier line),$(tier equal),$(tier few),$(tier none)]}" >tiers.json
# lines PROCESS: 60 reads of 1 MB and 60 of 3 MB at 2 ms and 500 MB/s; 120 of 1 MB in 5 ms; 99 of 10 MB.
lines() {
	cat <<-END
		evp_reads_total{process="$1",tier="line"} 120
		evp_read_bytes_total{process="$1",tier="line"} 240000000
		evp_read_seconds_total{process="$1",tier="line"} 0.72
		evp_read_square_bytes_total{process="$1",tier="line"} 600000000000000
		evp_read_byte_seconds_total{process="$1",tier="line"} 1680000
		evp_reads_total{process="$1",tier="equal"} 120
		evp_read_bytes_total{process="$1",tier="equal"} 120000000
		evp_read_seconds_total{process="$1",tier="equal"} 0.6
		evp_read_square_bytes_total{process="$1",tier="equal"} 120000000000000
		evp_read_byte_seconds_total{process="$1",tier="equal"} 600000
		evp_reads_total{process="$1",tier="few"} 99
		evp_read_bytes_total{process="$1",tier="few"} 990000000
		evp_read_seconds_total{process="$1",tier="few"} 1
	END
}
lines a >a.prom
evp-tiers tiers.json --from-metrics a.prom -o out.json
mkdir f
lines a >f/a.prom
lines b >f/b.prom
evp-tiers -q tiers.json --from-metrics f
grep -o '"name":"[a-z]*"\|"read_[^,}]*\|"latency[^,]*' out.json
cp "$DATA/table.h5" .
evp-plan -q table.h5 --tiers out.json -o m.jsonl && head -n 1 m.jsonl | grep -o '"uri":"redis://line"[^}]*'
evp-tiers tiers.json; echo $?
evp-tiers --from-metrics a.prom; echo $?
evp-tiers tiers.json --from-metrics a.prom --tier name=a,uri=/tmp; echo $?
evp-tiers tiers.json --from-metrics tiers.json; echo $?
sed 's/0.72/1e59/; s/0.6/0/' a.prom >bad.prom
evp-tiers tiers.json --from-metrics bad.prom; echo $?
