# What each operation does while a Redis server fails: a table for docs/serving.md, by tests/cli/load/faults.py.
. "$TOP/tests/cli/load/redis.inc"
[ "$python" ] || skip "a sanitizer must be linked into every program"
start
export BACK="$port" EVP_REDIS_TIMEOUT=0.5
FRONT=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export FRONT
"$python" "$TOP/tests/cli/load/faults.py" far
