# a model says what it is, in either container
evp-show --rows 3 "$DATA/tiny.gguf" "$DATA/tiny" | sed "s|$DATA|DATA|; /model digest/d"
