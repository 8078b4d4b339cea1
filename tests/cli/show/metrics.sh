# --metrics: one file, a folder with another program's file, JSON; malformed lines, each with file and line and status 3.
mkdir f
lines() {
	cat <<-END
		# HELP evp_finds_total Calls of evp_find().
		# TYPE evp_finds_total counter
		evp_finds_total{process="$1"} 8
		evp_asked_tokens_total{process="$1"} 1000
		evp_hits_total{process="$1",tier="dram",config="none"} 3
		evp_hits_total{process="$1",tier="ssd",config="kivi:bits=2"} 1
		evp_hit_tokens_total{process="$1",tier="dram",config="none"} 200
		evp_hit_tokens_total{process="$1",tier="ssd",config="kivi:bits=2"} 50
		evp_reads_total{process="$1",tier="dram"} 4
		evp_read_bytes_total{process="$1",tier="dram"} 4194304
		evp_read_seconds_total{process="$1",tier="dram"} 0.002
		evp_puts_total{process="$1",tier="dram"} 2
		evp_moves_total{process="$1",tier="ssd"} 1
		evp_evictions_total{process="$1",tier="dram"} 1
		evp_removes_total{process="$1"} 0
		evp_placed_contexts{process="$1",tier="dram"} 7
		evp_placed_bytes{process="$1",tier="dram"} 1048576
		evp_errors_total{process="$1",code="gone"} 1
		evp_errors_total{process="$1",code="io"} 0
		evp_of_a_later_release_total{process="$1",what="x"} 1e999
	END
}
lines 'a \" }, \\ b' >f/a.prom
evp-show --metrics f/a.prom
lines b >f/b.prom
printf 'apt_upgrades_pending{arch="all"} 3\nevp finds nothing here\n' >f/apt.prom
echo 'not metrics' >f/notes
evp-show --metrics f
evp-show --metrics f --json
refuse() { printf "$1" >bad.prom; evp-show --metrics bad.prom; echo $?; }
refuse 'evp_finds_total{process="a"} 1'
refuse 'x 1\nevp_finds_total{process="a"} -1\n'
refuse 'evp_finds_total{process="a"} 1.5\n'
refuse 'evp_finds_total{process="a"} 99999999999999999999\n'
refuse 'evp_finds_total 1\n'
refuse 'evp_finds_total{process="a} 1\n'
refuse 'evp_finds_total{process="a",tier="x"} 1\n'
refuse 'evp_read_seconds_total{process="a",tier="dram"} NaN\n'
refuse 'evp_reads_total{process="a"} 1\n'
refuse 'evp_reads_total{process="a",tier="a\\033[31m"} 1\n'
refuse 'evp_hits_total{process="a",tier="dram",config="what?"} 1\n'
refuse 'evp_errors_total{process="a",code="tired"} 1\n'
refuse 'x\0y\n'
refuse 'x 1\n'
refuse ''
{ echo 'x 1'; head -c 5000 /dev/zero | tr '\0' x; echo; } >bad.prom
evp-show --metrics bad.prom
{ seq -s '
' 1000000; echo; } >bad.prom
evp-show --metrics bad.prom
mkdir empty
evp-show --metrics empty; echo $?
evp-show --metrics nowhere; echo $?
evp-show --metrics f f; echo $?
evp-show --metrics f --check; echo $?
