/* media URI SIZE N THREADS - puts N payloads of SIZE bytes into a tier at URI (redis://..., or a folder) and gets them
 * again, and prints the bytes per second of both: what a medium reaches without state, index and reading back. Putting
 * ends with a flush, and into a folder it makes files that were not there.
 */
#include "base/clock.h"
#include "loader/store/medium.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct work {
    const struct medium *m;
    size_t size;
    int n;
    atomic_int next;
    bool put;
};

static void must(int code, const struct err *err)
{
    if (!code)
        return;
    fprintf(stderr, "media: %s\n", err->msg);
    exit(1);
}

static void name_object(int i, char key[OBJECT_FILE])
{
    const uint8_t id[OBJECT_ID] = { (uint8_t)i, (uint8_t)(i >> 8), (uint8_t)(i >> 16) };

    object_file(id, key);
}

static void *run(void *arg)
{
    struct work *w = arg;
    char *bytes = malloc(w->size);
    struct err err;

    memset(bytes, 1, w->size);
    for (int i; (i = w->next++) < w->n;) {
        char key[OBJECT_FILE];
        struct blob b = blob_of_bytes(bytes, w->size);
        name_object(i, key);
        if (w->put) {
            must(w->m->driver->put(w->m, key, &b, &err), &err);
            continue;
        }
        must(medium_get(w->m, key, (int64_t)w->size, &b, &err), &err);
        must(blob_read(&b, bytes, w->size, 0, &err), &err);
        blob_close(&b);
    }
    free(bytes);
    return NULL;
}

static double rate(struct work *w, int threads)
{
    pthread_t thread[64];
    struct err err;
    double start = clock_now();

    w->next = 0;
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, run, w))
            exit(1);
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    if (w->put)
        must(w->m->driver->flush(w->m, NULL, &err), &err);
    return (double)w->n * (double)w->size / (clock_now() - start);
}

static void remove_all(const struct work *w)
{
    for (int i = 0; i < w->n; i++) {
        char key[OBJECT_FILE];
        const struct medium_object object = { key, (int64_t)w->size };
        struct err err;
        name_object(i, key);
        must(w->m->driver->remove(w->m, &object, &err), &err);
    }
}

int main(int argc, char **argv)
{
    static const uint8_t store[OBJECT_ID] = { 0 };
    struct err err;
    struct medium m;

    if (argc != 5)
        return 2;
    struct tier tier = { .kind = tier_kind_of(argv[1]), .uri = argv[1] };
    struct medium_place place = { .tier = &tier, .folder = open(argv[1], O_RDONLY | O_DIRECTORY), .store = store };
    struct work w = { .m = &m, .size = (size_t)strtoull(argv[2], NULL, 10), .n = (int)strtol(argv[3], NULL, 10) };
    int threads = (int)strtol(argv[4], NULL, 10);

    must(medium_open(&m, &place, &err), &err);
    w.put = true;
    rate(&w, threads); /* memory of server and client is there from then on */
    if (tier.kind == TIER_FILE)
        remove_all(&w);
    printf("put %.0f", rate(&w, threads) / 1e6);
    w.put = false;
    printf(" get %.0f MB/s\n", rate(&w, threads) / 1e6);
    medium_close(&m);
    return 0;
}
