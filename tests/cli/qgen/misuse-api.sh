# Options that contradict each other, and addresses that are malformed or hold a secret.
echo '{"id":"a","text":"t"}' >c.jsonl
evp-qgen c.jsonl --model m
evp-qgen c.jsonl --api-base http://localhost/v1
evp-qgen c.jsonl --api-base localhost/v1 --model m
evp-qgen c.jsonl --api-base http://me:secret@localhost/v1 --model m
evp-qgen c.jsonl --api-base http://localhost/v1 --model m --from-dataset
evp-qgen c.jsonl --api-base http://localhost/v1,heavy --model m
evp-qgen c.jsonl --model m $(seq 65 | sed 's|.*|--api-base http://localhost/&|')
evp-qgen c.jsonl --token-limit 1
