# a model was made by none of our tools
cp "$DATA/tiny.gguf" .
evp-show --lineage tiny.gguf
