/* fenced.c - the hooks of kernels/around.h as the gates of a fence, and an allocator of single mappings. */
#include "tests/kernels/fenced.h"

#include "kernels/around.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct block {
    struct block *next;
    char *map, *at; // the mapping; the address that alloc gave, as near to the mapping's end as it can be aligned
    size_t bytes;   // that open and close; one page more is mapped
};

struct fence {
    struct fence *next;
    struct backend *inner;
    struct block *blocks;
    int protection; // of all blocks now
};
static struct fence *fences; // of all fenced backends that are open

static struct fence *fence_of(const struct backend *inner)
{
    struct fence *f = fences;

    while (f->inner != inner)
        f = f->next;
    return f;
}

static void protect(struct fence *f, int protection)
{
    f->protection = protection;
    for (struct block *b = f->blocks; b; b = b->next)
        cr_assert(b->bytes == 0 || mprotect(b->map, b->bytes, protection) == 0); // qemu-user fails to protect nothing
}

static void open_gate(void *arg)
{
    protect(arg, PROT_READ | PROT_WRITE);
}

static void close_gate(void *arg, const struct op_done *done)
{
    (void)done;
    protect(arg, PROT_NONE);
}

static void *fenced_alloc(struct backend *inner, size_t bytes, struct err *err)
{
    enum { ALIGNMENT = 64 };
    struct fence *f = fence_of(inner);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), used = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct block *b = bytes < PTRDIFF_MAX / 2 ? calloc(1, sizeof(*b)) : NULL;

    if (b) {
        b->bytes = (used + page - 1) / page * page;
        b->map = mmap(NULL, b->bytes + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    if (!b || b->map == MAP_FAILED) {
        free(b);
        err_set(err, ERR_NOMEM, "out of memory: %zu bytes behind the fence", bytes);
        return NULL;
    }
    b->at = b->map + (b->bytes - used);
    mprotect(b->map, b->bytes, PROT_READ | PROT_WRITE);
    memset(b->map, 0xff, b->bytes);
    mprotect(b->map, b->bytes, f->protection);
    b->next = f->blocks;
    f->blocks = b;
    return b->at;
}

static void fenced_free(struct backend *inner, void *at)
{
    if (!at)
        return;
    for (struct block **b = &fence_of(inner)->blocks; *b; b = &(*b)->next) {
        if ((*b)->at != at)
            continue;
        struct block *gone = *b;
        *b = gone->next;
        munmap(gone->map, gone->bytes + (size_t)sysconf(_SC_PAGESIZE));
        free(gone);
        return;
    }
    cr_assert_fail("free of an address that alloc did not give");
}

static void take_down(void *arg)
{
    struct fence *f = arg, **at = &fences;

    cr_assert_null(f->blocks, "device memory was not freed");
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    free(f);
}

struct backend *fenced_open(const char *dtype)
{
    struct err err = { 0 };
    struct backend *inner =
        backend_open(&(struct backend_options){ .name = "reference", .dtype = dtype, .n_threads = 1 }, &err);
    struct fence *f = calloc(1, sizeof(*f));

    cr_assert(inner && f, "%s", err.msg);
    inner->alloc = fenced_alloc;
    inner->free = fenced_free;
    *f = (struct fence){ fences, inner, NULL, PROT_NONE };
    fences = f;
    struct backend *be = around_open(inner, &(struct around_hooks){ open_gate, close_gate, f, take_down }, &err);
    cr_assert(be, "%s", err.msg);
    return be;
}
