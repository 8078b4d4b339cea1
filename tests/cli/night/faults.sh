# evp-nightly reaches its end whatever happened to one tier or one file, and loads what does not need
# it; the night after is as if nothing had happened.
. "$TOP/tests/cli/night/night.inc"
use_tiers "$dram,$ssd"
nights 3

# payload CONTEXT: its file on ssd.
payload() {
	python3 - "$1" <<-'END'
		import sqlite3, sys
		state = sqlite3.connect("world/disk/ssd/evp-state")
		print("world/disk/ssd/" + state.execute("SELECT file FROM payload WHERE context LIKE ? || '%'", sys.argv[1:]).fetchone()[0])
	END
}
rot() { printf XXXXXXXX | dd of="$(payload "$1")" bs=1 seek=100000 conv=notrunc status=none; }

fault_none() { :; }
fault_dram_removed() { rm -r world/dram; } # as by a reboot
fault_tier_removed() { rm -r world/disk/ssd; }
cure_tier_removed() { evp-load -q world/manifest.jsonl --payloads world/payloads --new || true; }
fault_tier_not_mounted() { mv world/disk world/away; }
cure_tier_not_mounted() { mv world/away world/disk; }
fault_tier_of_another_user() { if [ "$(id -u)" = 0 ]; then chown nobody world/disk/ssd; else chmod 000 world/disk/ssd; fi; }
cure_tier_of_another_user() { if [ "$(id -u)" = 0 ]; then chown root world/disk/ssd; else chmod 700 world/disk/ssd; fi; }
fault_payload_removed() { rm "$(payload section1)"; } # it stays on ssd that night
fault_moved_payload_removed() { rm "$(payload section3)"; } # it moves to dram
fault_payload_cut() { truncate -s 100000 "$(payload section1)"; }
fault_payload_rotten() { rot section1; }
fault_moved_payload_rotten() { rot section3; }
fault_state_removed() { rm world/disk/ssd/evp-state*; }
fault_state_empty() { rm -f world/disk/ssd/evp-state-* && : >world/disk/ssd/evp-state; }
fault_state_older() { rm world/disk/ssd/evp-state* && cp -a base-1/disk/ssd/evp-state* world/disk/ssd; }
fault_index_removed() { rm world/disk/ssd/evp-index; }
fault_index_garbage() { head -c 500 nightly.json >world/disk/ssd/evp-index; }
fault_manifest_removed() { rm world/manifest.jsonl; }
fault_manifest_older() { cp base-1/manifest.jsonl world; }
fault_receipt_not_writable() { rm world/manifest.jsonl.receipt && mkdir world/manifest.jsonl.receipt; }
cure_receipt_not_writable() { rmdir world/manifest.jsonl.receipt; }

fault none
fault dram_removed
fault tier_removed ssd
fault tier_not_mounted ssd
fault tier_of_another_user ssd
fault payload_removed
fault moved_payload_removed
fault payload_cut
fault payload_rotten section1
fault moved_payload_rotten section3
fault state_removed section7
fault state_empty section7
fault state_older section7
fault index_removed
fault index_garbage
fault manifest_removed
fault manifest_older
fault receipt_not_writable
