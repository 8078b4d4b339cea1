# rediss://: the server must be whom the uri names, and may want to know who we are; nothing is told to another.
. "$TOP/tests/cli/load/redis.inc"
# certificate NAME SUBJECT-ALT-NAME: NAME.crt and NAME.key, signed by ca.
certificate() {
	openssl req -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.csr" -subj "/CN=$1" >>redis.log 2>&1
	echo "subjectAltName=$2" >ext
	openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out "$1.crt" >>redis.log 2>&1
}
for ca in ca other; do
	openssl req -x509 -newkey rsa:2048 -nodes -keyout $ca.key -out $ca.crt -days 2 -subj "/CN=$ca" >>redis.log 2>&1
done
certificate server IP:127.0.0.1
certificate stranger DNS:elsewhere.example
certificate us DNS:us
# serve NAME [OPTION...]: a server with that certificate that speaks TLS alone.
serve() {
	name=$1
	shift
	redis-server --bind 127.0.0.1 --port 0 --tls-port "$port" --tls-cert-file "$name.crt" --tls-key-file "$name.key" \
		--tls-ca-cert-file ca.crt --save '' --appendonly no --dir "$PWD" "$@" >>redis.log 2>&1 &
	server=$!
	echo $server >>servers
	until grep -q "Ready to accept connections" redis.log; do
		sleep 0.05
		kill -0 $server || { cat redis.log >&2; exit 1; }
	done
	: >redis.log
}
redis_plan m <<-END
	a1 100 none dram
	b1 200 none far
	c1 20000 none far
END
sed -i 's|redis://|rediss://|g' m.jsonl
# how: what was said, whether a connection was closed or reset.
how() { hide <said | sed 's/ is gone: .*: it stays/ is gone: it stays/; s/ has closed the connection/ is gone/'; }
try() {
	evp-load -q m.jsonl --payloads pay "$@" 2>said
	echo "status $?"
	how
}
export EVP_REDIS_CA_FILE="$PWD/ca.crt"
serve server
echo "without a certificate:"; try
export EVP_REDIS_CERT_FILE="$PWD/us.crt" EVP_REDIS_KEY_FILE="$PWD/us.key"
echo "with one:"; try; where
try --verify
fetch b c
echo "signed by nobody we trust:"; EVP_REDIS_CA_FILE="$PWD/other.crt" try --verify
echo "files that are none:"
EVP_REDIS_CA_FILE=nowhere try --verify
EVP_REDIS_CERT_FILE=m.jsonl try --verify
EVP_REDIS_KEY_FILE=other.key try --verify
echo "without TLS to a port with:"; sed "s|rediss://|redis://|g; s|$PWD/far|$PWD/far2|g" m.jsonl >plain.jsonl
evp-load -q plain.jsonl --payloads pay 2>said; echo "status $?"; how
kill_server
echo "another's certificate:"; serve stranger --tls-auth-clients no; try --verify
kill_server
echo "with TLS to a port without:"; start; EVP_REDIS_TIMEOUT=1 try --verify
