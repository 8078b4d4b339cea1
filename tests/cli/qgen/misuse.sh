# A shard beyond the last one is misuse.
evp-qgen --shard 3/2 -
