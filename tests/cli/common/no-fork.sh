# No process is started while a device is open: what a child takes along of a device is undefined. Reading a table starts
# one. A library between the tools and oneDNN notes both.
command -v cc >/dev/null || skip "no compiler"
cat >note.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
static void note(const char *what)
{
	FILE *f = fopen(getenv("NOTES"), "a");
	fprintf(f, "%s\n", what);
	fclose(f);
}
pid_t fork(void)
{
	note("process");
	return ((pid_t(*)(void))dlsym(RTLD_NEXT, "fork"))();
}
int dnnl_engine_create(void **engine, int kind, size_t index)
{
	note("open");
	return ((int (*)(void **, int, size_t))dlsym(RTLD_NEXT, "dnnl_engine_create"))(engine, kind, index);
}
int dnnl_engine_destroy(void *engine)
{
	note("close");
	return ((int (*)(void *))dlsym(RTLD_NEXT, "dnnl_engine_destroy"))(engine);
}
END
cc -shared -fPIC -D_GNU_SOURCE note.c -o note.so -ldl || skip "the compiler makes no library"
noted() {
	: >notes
	NOTES=$PWD/notes LD_PRELOAD=$PWD/note.so ASAN_OPTIONS=verify_asan_link_order=0 "$@" || echo "status $?"
	uniq notes | paste -s -d ' '
}
printf '{"id":"%s","text":"The fox.","ask":" {question}"}\n' a b >c.jsonl
printf '{"id":"q%s","context":"%s","split":"train","text":"Who?"}\n' a a b b >q.jsonl
profile() { noted evp-profile --model "$DATA/tiny.gguf" c.jsonl q.jsonl --max-new-tokens 2 -q -o p.h5 --backend cpu "$@"; }
profile --configs none
# As an interrupted run leaves it: FILE, a shard that it lacks, and both contexts with something to do.
mkdir p.h5.d
evp-profile --model "$DATA/tiny.gguf" c.jsonl q.jsonl --max-new-tokens 2 -q -o p.h5.d/0123456789abcdef.h5 --configs knorm:drop=0.5
profile --configs knorm:drop=0.5,keydiff:drop=0.5
profile --configs knorm:drop=0.5,keydiff:drop=0.5
noted evp-score -q p.h5 --embedder "$DATA/minibert" -o table.h5
