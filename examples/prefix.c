/* prefix.c - which part of a prompt is already computed? Compiled against an installed EvicPress:
 *
 *     cc prefix.c $(pkg-config --cflags --libs evp) -o prefix
 *     echo 101 7592 2088 ... | ./prefix manifest.jsonl
 *
 * Reads token ids, a prompt a line, and says for each which prefix lies on a tier, fetching its payload. Any number of
 * threads may do this on one store.
 */
#include <evp.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 1 << 20 };

/* The ids of one line; returns how many, or -1 at the end. */
static long read_prompt(int32_t *tokens, char *line, size_t room)
{
    if (!fgets(line, (int)room, stdin))
        return -1;
    long n = 0;
    for (char *at = line, *end; n < MOST; at = end) {
        long id = strtol(at, &end, 10);
        if (end == at)
            break;
        tokens[n++] = (int32_t)id;
    }
    return n;
}

static int look_up(struct evp_store *store, const int32_t *tokens, long n)
{
    struct evp_prefix found;
    struct evp_error error;

    evp_refresh(store, NULL); /* cheap when nothing changed; what we have stays valid when it fails */
    int hit = evp_find(store, tokens, (size_t)n, &found, &error);
    if (hit == 0)
        return printf("nothing of %ld tokens is placed\n", n) < 0;
    void *payload = hit > 0 ? malloc(found.size) : NULL;
    if (!payload || evp_fetch(store, &found, payload, found.size, &error)) {
        fprintf(stderr, "prefix: %s\n", payload || hit < 0 ? error.text : "out of memory");
        free(payload);
        return 1;
    }
    printf("%lld of %ld tokens are placed on %s as %s, %llu bytes\n", (long long)found.n_tokens, n, found.tier,
           found.config, (unsigned long long)found.size);
    free(payload);
    return 0;
}

int main(int argc, char **argv)
{
    static int32_t tokens[MOST];
    static char line[8 * MOST];
    struct evp_store *store;
    struct evp_error error;
    int failed = 0;

    if (argc != 2 || evp_open(&store, argv[1], &error)) {
        fprintf(stderr, "prefix: %s\n", argc != 2 ? "usage: prefix MANIFEST <TOKENS" : error.text);
        return 1;
    }
    for (long n; (n = read_prompt(tokens, line, sizeof(line))) >= 0;)
        failed |= look_up(store, tokens, n);
    evp_close(store);
    return failed;
}
