# A cluster of three nodes, of which the tier names one: MOVED is followed, and ASK while slots move to another node; the
# sweep after a killed load looks at all nodes.
. "$TOP/tests/cli/load/redis.inc"
# Below the ports that the system gives to clients: there one was taken between two nodes' starts.
ports=$(/usr/bin/python3 -c 'import random, socket
def free(port):
    try:
        socket.create_server(("127.0.0.1", port)).close()
        return True
    except OSError:
        return False
found = [p for p in random.sample(range(10000, 20000), 100) if free(p) and free(p + 10000)]
print(*found[:3])')
port=${ports%% *}
for one in $ports; do
	start_on $one --cluster-enabled yes --cluster-config-file nodes.$one --cluster-node-timeout 5000 --cluster-port $((one + 10000))
done
nodes=
for one in $ports; do nodes="$nodes 127.0.0.1:$one"; done
redis-cli --cluster create $nodes --cluster-yes >create.log 2>&1 || { cat create.log >&2; exit 1; }
for one in $ports; do until redis-cli -p $one cluster info | grep -q cluster_state:ok; do sleep 0.1; done; done
keys() { for one in $ports; do redis-cli -p $one dbsize; done | awk '{ n += $1; full += $1 > 0 } END { print n " keys on " full " nodes" }'; }
{ for letter in a b c d e f g h i j k l; do echo "${letter}1 100 none far"; done; echo "m1 9000 none far"; } | redis_plan m
evp-load -q m.jsonl --payloads pay || exit
evp-show --check far >checked && keys
fetch a b c d e f g h i j k l m
# The slot of m1 moves: one of its pieces is there already, the other is not.
id=$(basename "$(file far m1 none)")
slot=$(cli cluster keyslot "{$id}")
from= to=
for one in $ports; do
	if redis-cli -p $one cluster countkeysinslot $slot | grep -q '^0$'; then to=$one; else from=$one; fi
done
node() { redis-cli -p $1 cluster myid; }
redis-cli -p $to cluster setslot $slot importing "$(node $from)" >move.log
redis-cli -p $from cluster setslot $slot migrating "$(node $to)" >move.log
redis-cli -p $from migrate 127.0.0.1 $to "$(redis-cli -p $from cluster getkeysinslot $slot 1)" 0 5000 >>move.log
redis-cli -p $from cluster countkeysinslot $slot; redis-cli -p $to cluster countkeysinslot $slot
fetch m
evp-show --check far >checked && echo whole
redis_plan m <<-END
	b1 100 none far
END
evp-load -q m.jsonl --payloads pay || exit
where; keys | sed 's/ on.*//'; fetch b
{ for letter in a b c d e f g h i j k l; do echo "${letter}1 100 none far"; done; } | redis_plan all
evp-load -q all.jsonl --payloads pay || exit
# A killed writer's values, which no payload names.
store=$(cli -c --scan --pattern 'evp:*' | head -n 1 | cut -d : -f 2)
for i in 1 2 3 4 5 6; do redis-cli -c -p $port set "evp:$store:{0000000000000000000000000000000$i}:0" x >>set.log; done
keys
python3 -c 'import sqlite3; db = sqlite3.connect("far/evp-state"); db.execute("UPDATE store SET swept = 0"); db.commit()'
evp-load -q all.jsonl --payloads pay && evp-show --check far >checked && keys && where | wc -l
