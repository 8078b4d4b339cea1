/* prefix.c - which prefix of a prompt is already computed? Compiled against an installed EvicPress:
 *
 *     cc prefix.c $(pkg-config --cflags --libs evicpress) -Wl,-rpath,$(pkg-config --variable=libdir evicpress) \
 *         -pthread -o prefix
 *     echo 101 7592 2088 ... | ./prefix manifest.jsonl
 *
 * Reads token ids, one prompt per line. For each prompt it fetches the payload of the longest placed prefix and prints
 * what it found. Four threads share one store.
 */
#include <evicpress.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };

/* Reads the ids on a line; returns how many there are. */
static size_t read_ids(int32_t *tokens, const char *line)
{
    size_t n = 0;
    char *end;

    for (long id = strtol(line, &end, 10); end != line; id = strtol(line, &end, 10)) {
        tokens[n++] = (int32_t)id;
        line = end;
    }
    return n;
}

static void look_up(struct evp_store *store, const int32_t *tokens, size_t n)
{
    struct evp_prefix found = { 0 };
    struct evp_error error;

    evp_refresh(store, NULL); /* cheap without changes; after a failure the store is unchanged */
    int hit = evp_find(store, tokens, n, &found, &error);
    void *payload = hit == 1 ? malloc(found.size) : NULL;
    if (hit == 0)
        printf("0 of %zu tokens are placed\n", n);
    else if (hit < 0 || !payload || evp_fetch(store, &found, payload, found.size, &error))
        printf("prefix: %s\n", hit == 1 && !payload ? "out of memory" : error.text);
    else
        printf("%lld of %zu tokens are placed on %s as %s, %llu bytes\n", (long long)found.n_tokens, n, found.tier,
               found.config, (unsigned long long)found.size);
    free(payload);
}

static void *serve(void *store)
{
    char *line = NULL;
    size_t cap = 0;

    while (getline(&line, &cap, stdin) >= 0) { /* stdio locks the stream: each line goes to one thread */
        int32_t *tokens = malloc((cap / 2 + 1) * sizeof(*tokens));
        if (tokens)
            look_up(store, tokens, read_ids(tokens, line));
        free(tokens);
    }
    free(line);
    return NULL;
}

int main(int argc, char **argv)
{
    struct evp_store *store;
    struct evp_error error;
    pthread_t thread[THREADS];
    int n = 0;

    if (argc != 2 || evp_open(&store, argv[1], &error)) {
        fprintf(stderr, "prefix: %s\n", argc == 2 ? error.text : "usage: prefix MANIFEST <TOKENS");
        return 1;
    }
    while (n < THREADS && !pthread_create(&thread[n], NULL, serve, store))
        n++;
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    evp_close(store);
    return n == 0;
}
