# Whatever of CUDA is missing, `--backend cuda` names it and ends with status 5, and auto computes on the CPU and says why.
printf '{"id":"a","text":"The fox jumps over Reginald.","ask":" {question}"}\n' >c.jsonl
printf '{"id":"q1","context":"a","split":"train","text":"What is the name?"}\n' >q.jsonl
profile() { "$tool" c.jsonl q.jsonl --model "$DATA/tiny.gguf" --configs none -q "$@" -o p.h5; echo "status $?" >&2; }
echo 'this is text' >text.so
mkdir -p bin
cp "$BUILD/evp-profile" bin/

tool=bin/evp-profile # installed without the object
unset EVP_CUDA_PLUGIN
profile --backend cuda
mkdir -p lib/evp # installed with one, in the folder of libraries; then beside the tool too, which is taken first
cp "$BUILD/tests/plugins/no_driver.so" lib/evp/evp-cuda.so
profile --backend cuda
cp text.so bin/evp-cuda.so
profile --backend cuda
tool=evp-profile
export EVP_CUDA_PLUGIN
for EVP_CUDA_PLUGIN in "$PWD/none.so" "$PWD/text.so" "$BUILD/libevicpress.so" "$BUILD/tests/plugins/no_driver.so"; do
	profile --backend cuda
done
PLUGIN_ABI=7 profile --backend cuda
test ! -e p.h5 || echo "a file was written"

# auto, once in a run. -q is silent about it.
profile --backend auto
evp-profile c.jsonl q.jsonl --model "$DATA/tiny.gguf" --configs none -o all.h5 2>&1 | grep -c 'computing on the CPU (-v says why)$'
evp-profile c.jsonl q.jsonl --model "$DATA/tiny.gguf" --configs none -n -v -o why.h5 2>&1 | grep 'NVIDIA driver'
evp-profile c.jsonl q.jsonl --model "$DATA/tiny.gguf" --configs none -o cpu.h5 --backend cpu 2>&1 | grep -c 'computing on'
evp-score all.h5 --embedder "$DATA/minibert" -o table.h5 2>&1 | grep -c 'computing on the CPU'
evp-score all.h5 --embedder "$DATA/minibert" -o table.h5 -q --backend cuda
echo "status $?" >&2
