/* read-load MANIFEST STOP - reads what make-load's plans place, from four threads, until a file STOP appears.
 *
 * Every prefix that is found must be fetched whole or be gone by then; any other outcome is a failure. Prints how often
 * each outcome occurred.
 */
#include "base/file.h"
#include "base/rng.h"
#include "loader/libevicpress/evicpress.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, TOKENS = 512 };

struct reader {
    struct evp_store *store;
    const char *stop;
    uint64_t seed;
    long found, gone, none;
    struct evp_error error; // code 0: none
};

static bool read_one(struct reader *r, struct rng *rng, char *buffer, size_t cap)
{
    int32_t tokens[TOKENS];
    struct evp_prefix prefix;
    int letter = 'a' + (int)rng_below(rng, 26);

    for (int i = 0; i < TOKENS; i++)
        tokens[i] = 1000 * letter + i;
    int hit = evp_find(r->store, tokens, (size_t)rng_below(rng, TOKENS), &prefix, &r->error);
    if (hit <= 0) {
        r->none++;
        return hit == 0;
    }
    int code = evp_fetch(r->store, &prefix, buffer, cap, &r->error);
    r->found += code == EVICPRESS_OK;
    r->gone += code == EVICPRESS_GONE;
    return code == EVICPRESS_OK || code == EVICPRESS_GONE;
}

static void *run(void *arg)
{
    struct reader *r = arg;
    struct rng rng = rng_new(r->seed);
    size_t cap = 1 << 20;
    char *buffer = malloc(cap);

    r->error.code = 0;
    while (buffer && !file_exists(r->stop)) {
        if (evp_refresh(r->store, &r->error) < 0 || !read_one(r, &rng, buffer, cap))
            break;
        r->error.code = 0;
    }
    free(buffer);
    return NULL;
}

int main(int argc, char **argv)
{
    struct reader reader[THREADS] = { 0 };
    pthread_t thread[THREADS];
    struct evp_store *store;
    struct evp_error error;
    long found = 0, gone = 0, none = 0;
    int status = 0;

    if (argc != 3 || evp_open(&store, argv[1], &error))
        return 2;
    for (int i = 0; i < THREADS; i++) {
        reader[i] = (struct reader){ .store = store, .stop = argv[2], .seed = (uint64_t)i };
        if (pthread_create(&thread[i], NULL, run, &reader[i]))
            return 2;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        found += reader[i].found;
        gone += reader[i].gone;
        none += reader[i].none;
        if (!reader[i].error.code)
            continue;
        status = 1;
        fprintf(stderr, "read-load: %s\n", reader[i].error.text);
    }
    evp_close(store);
    printf("%ld fetched, %ld gone, %ld not placed\n", found, gone, none);
    return status;
}
