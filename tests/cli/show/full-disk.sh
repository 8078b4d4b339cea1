# a full disk under stdout is reported, and ends with 1
evp-show "$DATA/tiny.gguf" >/dev/full
