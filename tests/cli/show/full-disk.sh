# a full disk behind stdout is said, and ends with 1
evp-show "$DATA/tiny.gguf" >/dev/full
