/* emulator.cpp - blocks, threads as fibers, barriers, warp operations, shared memory and asynchronous copies.
 *
 * A fiber runs until it must wait; then the next ready lane of its warp runs, or, when none is, the next warp with a
 * ready lane. So warps drift as far apart as their barriers allow, and a missing barrier shows. When no thread is ready
 * the kernel hangs, and the report says where each thread waits.
 *
 * This file is never compiled under a sanitizer; it tells the thread sanitizer of fibers and of what orders them. There
 * are two sets of fibers and of shared memory, used in turn, and nothing orders a block after the one before it: so the
 * sanitizer sees races of neighbouring blocks too.
 */
#include "tests/cuda/emulated/emulator.h"
#ifdef EMU_RACE
#include "tests/cuda/emulated/emulated_runtime.h"
#endif

#include <algorithm>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <vector>

#ifndef __x86_64__
#error "the emulator switches fibers in x86-64 assembly"
#endif

#ifdef EMU_TSAN
extern "C" {
void *__tsan_create_fiber(unsigned);
void __tsan_switch_to_fiber(void *, unsigned);
void *__tsan_get_current_fiber();
void __tsan_acquire(void *);
void __tsan_release(void *);
void __tsan_read16(void *);
void __tsan_write16(void *);
}
static void acquire(void *at)
{
    __tsan_acquire(at);
}
static void release(void *at)
{
    __tsan_release(at);
}
#else
static void acquire(void *)
{
}
static void release(void *)
{
}
#endif
#ifdef EMU_ASAN
extern "C" void __asan_poison_memory_region(void const volatile *, size_t);
extern "C" void __asan_unpoison_memory_region(void const volatile *, size_t);
#endif

namespace emu
{

enum {
    STACK_BYTES = 256 << 10,
    STATIC_MAX = 48 << 10,
    SHARED_MAX = 227 << 10,
    GAP = 64, // between shared arrays, and what is in it shows writes outside them
    PAGE = 4096,
    N_SETS = 2,
    MAX_ARRAYS = 64,
    POISON = 0xff, // a NaN in every float type, -1 as an integer
};

enum state { READY, AT_BARRIER, AT_WARP_OP, AT_PHASE, LEFT };

struct copy {
    char *dst;
    const char *src;
    bool valid, done;
    place from;
};

struct fiber : thread {
    void *stack_pointer;
    char *stack;
    enum state state;
    place where; // what it waits for, or did last
    const char *doing;
    const void *waits_for; // AT_PHASE
    std::vector<copy> started;
    std::vector<std::vector<copy>> groups;
    void *tsan;
};

/* An operation that lanes of a warp are in. Its index is its lowest lane. */
struct meeting {
    const struct warp_op *op;
    unsigned mask, here;
    place where;
};

struct warp_state {
    unsigned ready; // lanes
    struct meeting meetings[32];
    struct warp_words words;
    char sync[2][32]; // addresses for the sanitizer, of operations of even and odd numbers
    unsigned n_done[32];
};

struct array {
    const void *name;
    char *at;
    size_t bytes;
};

struct shared_set {
    char *map, *arena; // arena: SHARED_MAX and the gaps, then a closed page
    struct array arrays[MAX_ARRAYS];
    int n_arrays;
    size_t used, counted, counted_static; // counted: without the gaps
};

struct fiber_set {
    struct fiber *fibers; // (MAX_THREADS)
    struct warp_state warps[MAX_THREADS / 32];
    struct shared_set shared;
    char sync_barrier[2], sync_end; // of barriers of even and odd numbers
};

enum order { FORWARD, REVERSE, RANDOM };
enum async { LATE, EAGER, EITHER };

static struct {
    bool known;
    enum order order;
    enum async async;
    uint64_t random;
} options;

struct thread *current;
struct block block;

static struct fiber_set sets[N_SETS], *set; // set: of the block that runs
static const struct kernel_launch *running;
static int n_threads, n_warps, n_left, n_arrived, n_votes, last_votes, n_barriers;
static unsigned ready_warps, warp_order[MAX_THREADS / 32], place_of_warp[MAX_THREADS / 32];
static place barrier_where;
static void *host_stack_pointer;
static char sync_launch;
#ifdef EMU_TSAN
static void *host_tsan;
#endif

static uint64_t random_below(uint64_t n)
{
    options.random ^= options.random << 13;
    options.random ^= options.random >> 7;
    options.random ^= options.random << 17;
    return options.random % n;
}

static void read_options()
{
    const char *order = getenv("EMU_ORDER"), *async = getenv("EMU_ASYNC");

    options.known = true;
    options.random = 88172645463325252u;
    if (!order || !strcmp(order, "forward"))
        options.order = FORWARD;
    else if (!strcmp(order, "reverse"))
        options.order = REVERSE;
    else if (!strncmp(order, "random:", 7)) {
        options.order = RANDOM;
        options.random += 0x9e3779b97f4a7c15u * strtoull(order + 7, NULL, 10);
    } else {
        fprintf(stderr, "cuda emulator: EMU_ORDER is forward, reverse or random:SEED, not '%s'\n", order);
        exit(2);
    }
    if (!async || !strcmp(async, "late"))
        options.async = LATE;
    else if (!strcmp(async, "eager"))
        options.async = EAGER;
    else if (!strcmp(async, "random"))
        options.async = EITHER;
    else {
        fprintf(stderr, "cuda emulator: EMU_ASYNC is late, eager or random, not '%s'\n", async);
        exit(2);
    }
}

/* ---- reports ------------------------------------------------------------- */

static struct fiber *self()
{
    return static_cast<struct fiber *>(current);
}

void describe_thread(char *text, size_t cap)
{
    text[0] = 0;
    if (running && current)
        snprintf(text, cap, "%s, block (%u, %u, %u), thread (%u, %u, %u)", running->name, block.index.x, block.index.y,
                 block.index.z, current->index.x, current->index.y, current->index.z);
}

/* Lines for runs of threads that wait at one place. */
static void report_threads()
{
    static const char *const states[] = { "is ready", "waits at a barrier", "waits in a warp operation",
                                          "waits for a phase", "has left" };

    for (int i = 0, next; i < n_threads; i = next) {
        const struct fiber *f = &set->fibers[i];
        for (next = i + 1; next < n_threads; next++) {
            const struct fiber *g = &set->fibers[next];
            if (g->state != f->state || g->where.line != f->where.line || g->where.file != f->where.file)
                break;
        }
        fprintf(stderr, "  thread %d", i);
        if (next > i + 1)
            fprintf(stderr, " to %d", next - 1);
        fprintf(stderr, " %s", states[f->state]);
        if (f->where.file)
            fprintf(stderr, ", %s at %s:%d", f->doing, f->where.file, f->where.line);
        fputc('\n', stderr);
    }
}

void die(const char *format, ...)
{
    va_list args;

    fprintf(stderr, "cuda emulator: ");
    if (running)
        fprintf(stderr, "%s, block (%u, %u, %u)", running->name, block.index.x, block.index.y, block.index.z);
    if (running && current)
        fprintf(stderr, ", thread %d", (int)(self() - set->fibers));
    fprintf(stderr, running ? ": " : "");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    if (running)
        report_threads();
    fflush(stderr);
    abort();
}

/* ---- switching ----------------------------------------------------------- */

extern "C" void emu_switch(void **save, void *load);
asm(".text\n"
    ".globl emu_switch\n"
    ".hidden emu_switch\n"
    ".type emu_switch, @function\n"
    "emu_switch:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  ret\n"
    ".size emu_switch, .-emu_switch\n");

/* To another fiber, or to the host (NULL). */
static void go_to(struct fiber *to)
{
    struct fiber *from = self();

    current = to;
#ifdef EMU_TSAN
    __tsan_switch_to_fiber(to ? to->tsan : host_tsan, 1);
#endif
    emu_switch(from ? &from->stack_pointer : &host_stack_pointer, to ? to->stack_pointer : host_stack_pointer);
}

static int pick(unsigned mask, int n)
{
    if (options.order == REVERSE)
        return 31 - __builtin_clz(mask);
    if (options.order == RANDOM && (mask & (mask - 1))) {
        int turn = (int)random_below((uint64_t)n);
        unsigned above = mask >> turn << turn;
        return __builtin_ctz(above ? above : mask);
    }
    return __builtin_ctz(mask);
}

static void set_ready(int i, bool ready)
{
    unsigned *lanes = &set->warps[i >> 5].ready, bit = 1u << (i & 31), warp = 1u << place_of_warp[i >> 5];

    *lanes = ready ? *lanes | bit : *lanes & ~bit;
    ready_warps = *lanes ? ready_warps | warp : ready_warps & ~warp;
}

/* The next thread that can run: of this warp, else of the next warp in order. NULL: none. */
static struct fiber *next_ready()
{
    int warp = self()->warp;
    unsigned lanes = set->warps[warp].ready;

    if (!lanes) {
        unsigned at = place_of_warp[warp], later = ready_warps >> at << at;
        if (!ready_warps)
            return NULL;
        warp = (int)warp_order[__builtin_ctz(later ? later : ready_warps)];
        lanes = set->warps[warp].ready;
    }
    return &set->fibers[warp * 32 + pick(lanes, 32)];
}

/* This thread waits; returns when another has made it ready. */
static void wait(enum state state, const char *doing, place here)
{
    struct fiber *f = self();

    f->state = state;
    f->doing = doing;
    f->where = here;
    set_ready((int)(f - set->fibers), false);
    struct fiber *next = next_ready();
    if (!next)
        die("deadlock: no thread can go on");
    go_to(next);
}

static void wake(int i)
{
    set->fibers[i].state = READY;
    set_ready(i, true);
}

void sleep_at(const void *at, const char *doing, place here)
{
    self()->waits_for = at;
    wait(AT_PHASE, doing, here);
}

void learn_from(const void *at)
{
    acquire(const_cast<void *>(at));
}

void wake_at(const void *at)
{
    release(const_cast<void *>(at));
    for (int i = 0; i < n_threads; i++)
        if (set->fibers[i].state == AT_PHASE && set->fibers[i].waits_for == at)
            wake(i);
}

/* ---- barriers and warp operations ---------------------------------------- */

int barrier(enum vote, int predicate, place here)
{
    struct fiber *f = self();

    if (n_left)
        die("a barrier at %s:%d that %d threads will never reach: they have left the kernel", here.file, here.line,
            n_left);
    if (n_arrived && (here.line != barrier_where.line || strcmp(here.file, barrier_where.file) != 0))
        die("divergent barriers: this thread is at %s:%d, others wait at %s:%d", here.file, here.line,
            barrier_where.file, barrier_where.line);
    barrier_where = here;
    f->where = here;
    f->doing = "__syncthreads";
    n_votes += predicate != 0;
    char *sync = &set->sync_barrier[n_barriers % 2]; // who is late here must not learn what others do after it
    release(sync);
    if (++n_arrived < n_threads) {
        wait(AT_BARRIER, "__syncthreads", here);
    } else {
        n_arrived = 0;
        n_barriers++;
        last_votes = n_votes;
        n_votes = 0;
        for (int i = 0; i < n_threads; i++)
            if (&set->fibers[i] != f)
                wake(i);
    }
    acquire(sync);
    f->n_barriers++;
    return last_votes;
}

const uint32_t *warp_do(const struct warp_op *op, unsigned mask, const uint32_t *in, int n_words, place here)
{
    struct fiber *f = self();
    struct warp_state *w = &set->warps[f->warp];

    if (!(mask >> f->lane & 1))
        die("%s at %s:%d: this lane is not in its own mask %08x", op->what, here.file, here.line, mask);
    struct meeting *m = &w->meetings[__builtin_ctz(mask)];
    if (!m->here) {
        *m = (struct meeting){ op, mask, 0, here };
        for (int l = 0; l < 32; l++)
            if ((mask >> l & 1) && set->fibers[f->warp * 32 + l].state == LEFT)
                die("%s at %s:%d: lane %d of the mask has left the kernel", op->what, here.file, here.line, l);
    }
    if (m->op != op || m->mask != mask || m->where.line != here.line || strcmp(m->where.file, here.file) != 0)
        die("lanes of a warp are in different operations: %s at %s:%d, %s at %s:%d", op->what, here.file, here.line,
            m->op->what, m->where.file, m->where.line);
    for (int i = 0; i < n_words; i++)
        w->words.in[f->lane][i] = in[i];
    unsigned group = (unsigned)__builtin_ctz(mask);
    char *sync = &w->sync[w->n_done[group] % 2][group];
    release(sync);
    f->where = here;
    f->doing = op->what;
    m->here |= 1u << f->lane;
    if (m->here != mask) {
        wait(AT_WARP_OP, op->what, here);
    } else {
        w->words.mask = mask;
        op->combine(&w->words);
        m->here = 0;
        w->n_done[group]++;
        for (int l = 0; l < 32; l++)
            if ((mask >> l & 1) && l != f->lane)
                wake(f->warp * 32 + l);
    }
    acquire(sync);
    f->n_meetings += mask == 0xffffffffu;
    return w->words.out[f->lane];
}

/* ---- shared memory ------------------------------------------------------- */

/* Not memset: the sanitizers would take it for an access of the thread. */
static void fill(char *at, size_t bytes)
{
    asm volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(POISON) : "memory");
}

static void set_access(const char *at, size_t bytes, bool open)
{
#ifdef EMU_ASAN
    if (open)
        __asan_unpoison_memory_region(at, bytes);
    else
        __asan_poison_memory_region(at, bytes);
#else
    (void)at;
    (void)bytes;
    (void)open;
#endif
}

static size_t arena_bytes()
{
    return ((size_t)SHARED_MAX + (MAX_ARRAYS + 1) * 2 * GAP + PAGE - 1) / PAGE * PAGE;
}

static void open_shared(struct shared_set *s)
{
    if (!s->map) {
        size_t bytes = arena_bytes() + 2 * PAGE;
        void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (map == MAP_FAILED)
            die("no memory for a shared arena");
        s->map = static_cast<char *>(map);
        s->arena = s->map + PAGE;
        mprotect(s->map, PAGE, PROT_NONE);
        mprotect(s->arena + arena_bytes(), PAGE, PROT_NONE);
        fill(s->arena, arena_bytes());
        set_access(s->arena, arena_bytes(), false);
    }
    s->n_arrays = 0;
    s->used = GAP + 16;
    s->counted = 0;
    s->counted_static = 0;
}

/* Gaps must be as they were; what was used is poison again. */
static void close_shared(struct shared_set *s)
{
    set_access(s->arena, s->used, true);
    for (int i = 0; i < s->n_arrays; i++) {
        const struct array *a = &s->arrays[i];
        for (int j = 0; j < GAP; j++) {
            if ((unsigned char)a->at[-1 - j] != POISON)
                die("something was written %d bytes before a shared array of %zu bytes", j + 1, a->bytes);
            if ((unsigned char)a->at[a->bytes + (size_t)j] != POISON)
                die("something was written %d bytes after a shared array of %zu bytes", j + 1, a->bytes);
        }
    }
    fill(s->arena, s->used);
    set_access(s->arena, s->used, false);
}

void *shared_memory(const void *name, size_t bytes)
{
    struct shared_set *s = &set->shared;

    for (int i = 0; i < s->n_arrays; i++)
        if (s->arrays[i].name == name)
            return s->arrays[i].at;
    if (!name)
        bytes = running->shared_bytes;
    if (!name && bytes == 0)
        die("a kernel with dynamic shared memory was launched with 0 bytes of it");
    if (s->n_arrays == MAX_ARRAYS)
        die("more than %d shared arrays", (int)MAX_ARRAYS);
    s->counted += (bytes + 15) / 16 * 16;
    s->counted_static += name ? (bytes + 15) / 16 * 16 : 0;
    if (s->counted_static > STATIC_MAX)
        die("%zu bytes of static shared memory, more than %d", s->counted_static, (int)STATIC_MAX);
    if (s->counted > SHARED_MAX)
        die("%zu bytes of shared memory, more than %d", s->counted, (int)SHARED_MAX);
    char *at = s->arena + s->used;
    s->arrays[s->n_arrays++] = (struct array){ name, at, bytes };
    s->used += (bytes + 15) / 16 * 16 + GAP; // 16-byte aligned and no more
    if (((uintptr_t)(s->arena + s->used) & 16) == 0)
        s->used += 16;
    set_access(at, bytes, true);
    return at;
}

/* Is all of it in one shared array? */
bool in_shared(const void *at, size_t bytes)
{
    const struct shared_set *s = &set->shared;
    const char *p = static_cast<const char *>(at);

    for (int i = 0; i < s->n_arrays; i++)
        if (p >= s->arrays[i].at && p + bytes <= s->arrays[i].at + s->arrays[i].bytes)
            return true;
    return false;
}

char *shared_begin()
{
    return set->shared.arena;
}

bool is_shared(const char *at)
{
    return at >= set->shared.arena && at < set->shared.arena + arena_bytes();
}

bool is_own(const char *at)
{
    const char *stack = self()->stack, *call = reinterpret_cast<const char *>(running->call.get());
    const char *fibers = reinterpret_cast<const char *>(set->fibers);

    return (at >= stack && at < stack + STACK_BYTES) || (at >= call && at < call + running->call->bytes) ||
           (at >= fibers && at < fibers + MAX_THREADS * sizeof(struct fiber));
}

void check_matrix_row(const void *row, place here)
{
    if ((uintptr_t)row % 16)
        die("ldmatrix at %s:%d: a row that is not 16-byte aligned", here.file, here.line);
    if (!in_shared(row, 16))
        die("ldmatrix at %s:%d: a row outside shared memory", here.file, here.line);
}

/* ---- asynchronous copies ------------------------------------------------- */

bool happens_now()
{
    return options.async == EAGER || (options.async == EITHER && random_below(2));
}

void tell_of_unit(const void *at, bool writes)
{
#ifdef EMU_TSAN
    writes ? __tsan_write16(const_cast<void *>(at)) : __tsan_read16(const_cast<void *>(at));
#elif defined(EMU_RACE)
    access(at, 16, writes ? WRITE : READ, __builtin_return_address(0));
#else
    (void)at;
    (void)writes;
#endif
}

/* The sanitizer sees it as accesses of the thread. */
static void tell_of_copy(const struct copy *c)
{
    if (c->valid)
        tell_of_unit(c->src, false);
    tell_of_unit(c->dst, true);
}

static void do_copy(const struct copy *c)
{
    tell_of_copy(c);
    uint64_t words[2] = { 0, 0 };
    if (c->valid)
        __builtin_memcpy(words, c->src, 16);
    __builtin_memcpy(c->dst, words, 16);
}

void async_copy(void *dst, const void *src, bool valid, place here)
{
    struct fiber *f = self();

    if ((uintptr_t)dst % 16 || (valid && (uintptr_t)src % 16))
        die("copy_async_16 at %s:%d: an address that is not 16-byte aligned", here.file, here.line);
    if (!in_shared(dst, 16))
        die("copy_async_16 at %s:%d: to an address outside shared memory", here.file, here.line);
    if (valid && in_shared(src, 1))
        die("copy_async_16 at %s:%d: from shared memory", here.file, here.line);
    struct copy c = { static_cast<char *>(dst), static_cast<const char *>(src), valid, happens_now(), here };
    copy_begins(dst);
    if (c.done)
        do_copy(&c);
    else
        tell_of_copy(&c); // it may happen from now on
    f->started.push_back(c);
}

void async_commit()
{
    struct fiber *f = self();

    f->groups.push_back(std::move(f->started));
    f->started.clear();
}

void async_wait(int n_left)
{
    struct fiber *f = self();

    while ((int)f->groups.size() > n_left) {
        for (const struct copy &c : f->groups.front()) {
            if (!c.done)
                do_copy(&c);
            copy_ends(c.dst);
        }
        f->groups.erase(f->groups.begin());
    }
}

/* ---- blocks -------------------------------------------------------------- */

static void leave(struct fiber *f)
{
    if (!f->started.empty())
        die("copy_async_16 at %s:%d was never committed", f->started[0].from.file, f->started[0].from.line);
    for (const std::vector<copy> &group : f->groups)
        if (!group.empty())
            die("copy_async_16 at %s:%d was never waited for", group[0].from.file, group[0].from.line);
    if (n_arrived)
        die("a thread leaves the kernel, others wait at the barrier at %s:%d", barrier_where.file, barrier_where.line);
    for (struct meeting &m : set->warps[f->warp].meetings)
        if (m.here && (m.mask >> f->lane & 1))
            die("lane %d leaves the kernel, others wait for it in %s at %s:%d", f->lane, m.op->what, m.where.file,
                m.where.line);
    f->state = LEFT;
    n_left++;
    set_ready((int)(f - set->fibers), false);
    release(&set->sync_end);
    if (n_left == n_threads)
        go_to(NULL);
    struct fiber *next = next_ready();
    if (!next)
        die("deadlock: no thread can go on");
    go_to(next);
}

/* Where every fiber begins. */
static void fiber_main()
{
    acquire(&sync_launch);
    running->call->run();
    leave(self());
    __builtin_trap();
}

static void start_fiber(struct fiber *f, int i)
{
    const dim3 *size = &block.size;
    unsigned u = (unsigned)i;

    if (!f->stack) {
        void *map =
            mmap(NULL, STACK_BYTES + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (map == MAP_FAILED)
            die("no memory for a thread's stack");
        mprotect(map, PAGE, PROT_NONE);
        f->stack = static_cast<char *>(map) + PAGE;
#ifdef EMU_TSAN
        f->tsan = __tsan_create_fiber(0);
#endif
    }
    f->index = (uint3){ u % size->x, u / size->x % size->y, u / (size->x * size->y) };
    f->lane = i % 32;
    f->warp = i / 32;
    f->n_barriers = f->n_meetings = f->n_arrivals = 0;
    f->state = READY;
    f->where = (place){ NULL, 0 };
    f->groups.clear();
    f->started.clear();
    void **sp = reinterpret_cast<void **>(f->stack + STACK_BYTES);
    *--sp = NULL; // where fiber_main would return to, and keeps the stack aligned
    *--sp = reinterpret_cast<void *>(fiber_main);
    for (int k = 0; k < 6; k++)
        *--sp = NULL;
    f->stack_pointer = sp;
}

static void shuffle_order(unsigned *order, int n)
{
    for (int i = 0; i < n; i++)
        order[i] = (unsigned)(options.order == REVERSE ? n - 1 - i : i);
    for (int i = n - 1; options.order == RANDOM && i > 0; i--)
        std::swap(order[i], order[random_below((uint64_t)i + 1)]);
}

/* Block number `at` of the grid, the i-th that runs. */
static void run_block(unsigned at, unsigned i_run)
{
    const dim3 *grid = &block.grid;

    set = &sets[i_run % N_SETS];
    acquire(&set->sync_end); // what used this set before
    block.index = (uint3){ at % grid->x, at / grid->x % grid->y, at / (grid->x * grid->y) };
    block.number = at;
    n_left = n_arrived = n_votes = 0;
    if (!set->fibers)
        set->fibers = new struct fiber[MAX_THREADS]();
    open_shared(&set->shared);
    begin_products(n_threads);
    shuffle_order(warp_order, n_warps);
    for (int i = 0; i < n_warps; i++)
        place_of_warp[warp_order[i]] = (unsigned)i;
    ready_warps = 0;
    for (int i = 0; i < n_warps; i++)
        memset(set->warps[i].meetings, 0, sizeof(set->warps[i].meetings));
    for (int i = 0; i < n_threads; i++) {
        start_fiber(&set->fibers[i], i);
        set_ready(i, true);
    }
    unsigned first = warp_order[0];
    release(&sync_launch);
    go_to(&set->fibers[first * 32 + (unsigned)pick(set->warps[first].ready, 32)]);
    end_products();
    close_shared(&set->shared);
}

void run_kernel(const struct kernel_launch *launch)
{
    unsigned n_blocks = launch->grid.x * launch->grid.y * launch->grid.z;

    if (!options.known)
        read_options();
#ifdef EMU_TSAN
    host_tsan = __tsan_get_current_fiber();
#endif
#ifdef EMU_RACE
    begin_races();
#endif
    running = launch;
    block.size = launch->block;
    block.grid = launch->grid;
    n_threads = (int)(launch->block.x * launch->block.y * launch->block.z);
    if (n_threads % 32)
        die("a block of %d threads, not a multiple of 32", n_threads);
    n_warps = n_threads / 32;
    std::vector<unsigned> order(n_blocks);
    shuffle_order(order.data(), (int)n_blocks);
    for (unsigned i = 0; i < n_blocks; i++)
        run_block(order[i], i);
    for (struct fiber_set &s : sets)
        acquire(&s.sync_end);
#ifdef EMU_RACE
    end_races(launch->name);
#endif
    running = NULL;
}

} // namespace emu
