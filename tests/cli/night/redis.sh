# evp-nightly, when a Redis server is away, silent, or has lost what it had.
. "$TOP/tests/cli/load/redis.inc"
. "$TOP/tests/cli/night/night.inc"
mkdir world/far
use_tiers "$dram,$(tier far redis "redis://127.0.0.1:$port" 500000 1e8 ",\"state\":\"$PWD/world/far\"")"
checked="world/dram world/far"
start --dbfilename base.rdb
nights 3
cli save >saved
export EVP_REDIS_TIMEOUT=0.5

fault_server_away() { kill_server || true; }
cure_server_away() { start --dbfilename base.rdb; }
fault_server_silent() { kill -STOP $server; }
cure_server_silent() { kill -CONT $server; }
fault_server_lost_all() { kill_server; start; }

fault server_away far
kill_server; start --dbfilename base.rdb
fault server_silent far
kill_server; start --dbfilename base.rdb
fault server_lost_all
