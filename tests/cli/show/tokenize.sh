# ids of each line; an empty line stays empty, the last one needs no end; a folder gives the ids of the file it equals
printf 'hello world 12\n\nin <|im_end|>\r\nlast' >text
evp-show "$DATA/tiny.gguf" --tokenize text
evp-show --tokenize - "$DATA/tiny" <text
printf 'hello\nworld\0hello' | evp-show --tokenize - "$DATA/tiny.gguf"
# An embedder's special tokens are found in the text, as in answers.
printf '[SEP]\n[sep]\nthe[SEP]cache [MASK]' | evp-show --tokenize - "$DATA/minibert"
