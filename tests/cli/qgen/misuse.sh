# A shard that is none.
evp-qgen --shard 3/2 -
