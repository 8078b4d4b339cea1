/* emulated_race.cpp - what the thread sanitizer's compiler pass calls, with the rules of a CUDA device.
 *
 * A kernel compiled with -fsanitize=thread calls a function here before every access to memory. Linked in place of the
 * sanitizer's own library, they find, in a time that does not grow with the number of threads:
 *   - races: two accesses, one of them a write, by two threads of a block that neither a barrier nor an operation of
 *     the whole warp is between, nor an arrival at a phase that the other waited for; or by two blocks of a launch,
 *     whatever is between
 *   - foreign memory: a kernel may touch device memory, its block's shared memory, its own variables and arguments
 * and count the bytes of device memory that each kernel reads and writes.
 *
 * Every byte of memory has a mark of the last read and of the last write. Only these are kept; that others came
 * before is remembered as long as it matters.
 */
#ifdef EMU_RACE

#include "tests/cuda/emulated/emulated_runtime.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <unordered_map>
#include <vector>

namespace emu
{

enum { PAGE = 4096, GRANULE = 1 };

struct mark {
    unsigned launch, block, n_barriers, n_meetings, n_arrivals; // launch 0: none
    unsigned short thread;
    bool atomic, of_lanes, of_warps, of_blocks; // not of this thread, warp, block alone
    const void *from;
};
struct cell {
    struct mark read, write;
};
struct page {
    struct cell cells[PAGE / GRANULE];
};

static std::unordered_map<uintptr_t, struct page *> pages;
static uintptr_t last_number;
static struct page *last_page;
static unsigned n_launches;
static unsigned long bytes_read, bytes_written;
static struct {
    const char *begin, *end;
} image;

static struct cell *cell_of(uintptr_t at)
{
    if (at / PAGE != last_number || !last_page) {
        struct page *&p = pages[at / PAGE];
        if (!p)
            p = static_cast<struct page *>(calloc(1, sizeof(*p)));
        last_number = at / PAGE;
        last_page = p;
    }
    return &last_page->cells[at % PAGE / GRANULE];
}

/* ---- what may be touched ------------------------------------------------- */

static int find_image(struct dl_phdr_info *info, size_t, void *)
{
    const char *me = reinterpret_cast<const char *>(&find_image), *begin = NULL, *end = NULL;

    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        const char *at = reinterpret_cast<const char *>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        begin = begin ? begin : at;
        end = at + info->dlpi_phdr[i].p_memsz;
    }
    if (me < begin || me >= end)
        return 0;
    image.begin = begin;
    image.end = end;
    return 1;
}

/* "function at file:line" of an address of code. */
static std::string place_of(const void *code)
{
    char command[600], line[300] = "?";
    Dl_info info;

    if (!dladdr(code, &info) || !info.dli_fname)
        return line;
    snprintf(command, sizeof(command), "addr2line -pe '%s' 0x%zx", info.dli_fname,
             (size_t)(static_cast<const char *>(code) - static_cast<const char *>(info.dli_fbase)) - 1);
    FILE *f = popen(command, "r");
    if (f && fgets(line, sizeof(line), f))
        line[strcspn(line, "\n")] = 0;
    if (f)
        pclose(f);
    return line;
}

enum where { OWN, SHARED, DEVICE };

static enum where where_is(const void *at, size_t bytes, const void *from)
{
    const char *p = static_cast<const char *>(at);

    if (is_own(p))
        return OWN;
    if (is_shared(p))
        return SHARED;
    if (on_device(p, bytes))
        return DEVICE;
    if (!image.begin)
        dl_iterate_phdr(find_image, NULL);
    if (p < image.begin || p >= image.end)
        die("%s touches %p, which is neither device memory nor its own: the host's, or freed", place_of(from).c_str(),
            at);
    return OWN;
}

/* ---- phases -------------------------------------------------------------- */

/* What is over: of each thread what it did before that many arrivals, of each warp before that many operations. A warp
 * knows what one of its lanes does. */
struct known {
    unsigned arrivals[MAX_THREADS], meetings[MAX_THREADS / 32];
};
struct known_phase {
    struct known coming, last; // of the phase that runs; of the one before
};
static struct known of_warp[MAX_THREADS / 32];
static std::unordered_map<const void *, struct known_phase> of_phase;

static void join(struct known *to, const struct known *from)
{
    for (int i = 0; i < MAX_THREADS; i++)
        to->arrivals[i] = from->arrivals[i] > to->arrivals[i] ? from->arrivals[i] : to->arrivals[i];
    for (int i = 0; i < MAX_THREADS / 32; i++)
        to->meetings[i] = from->meetings[i] > to->meetings[i] ? from->meetings[i] : to->meetings[i];
}

void phase_learns(const void *at)
{
    struct known *k = &of_phase[at].coming;

    join(k, &of_warp[current->warp]);
    k->arrivals[current->warp * 32 + current->lane] = ++current->n_arrivals;
    if (current->n_meetings > k->meetings[current->warp])
        k->meetings[current->warp] = current->n_meetings;
}

void phase_ends(const void *at)
{
    of_phase[at].last = of_phase[at].coming;
}

void thread_learns(const void *at)
{
    join(&of_warp[current->warp], &of_phase[at].last);
}

void forget_phases()
{
    of_phase.clear();
    __builtin_memset(of_warp, 0, sizeof(of_warp));
}

/* ---- races --------------------------------------------------------------- */

/* May what left this mark happen at the same time as what this thread does now? */
static bool is_unordered(const struct mark *m, unsigned thread, bool shared)
{
    if (m->launch != n_launches || (shared && m->block != block.number))
        return false;
    if (m->block != block.number || m->of_blocks)
        return true;
    if (m->n_barriers != current->n_barriers)
        return false;
    const struct known *k = &of_warp[current->warp];
    if (m->n_arrivals < k->arrivals[m->thread] || m->n_meetings < k->meetings[m->thread / 32])
        return false; // and what others did before it, one hopes
    if (m->of_warps || m->thread / 32 != thread / 32)
        return true;
    return m->n_meetings >= current->n_meetings && (m->of_lanes || m->thread != thread);
}

static void leave_mark(struct mark *m, unsigned thread, bool atomic, bool shared, const void *from)
{
    struct mark now = { n_launches,
                        block.number,
                        current->n_barriers,
                        current->n_meetings,
                        current->n_arrivals,
                        (unsigned short)thread,
                        atomic,
                        false,
                        false,
                        false,
                        from };

    if (m->launch == n_launches && !shared)
        now.of_blocks = m->of_blocks || m->block != block.number;
    if (m->launch == n_launches && m->block == block.number && m->n_barriers == now.n_barriers) {
        now.of_warps = m->of_warps || m->thread / 32 != thread / 32;
        now.of_lanes = m->n_meetings == now.n_meetings && (m->of_lanes || m->thread != thread);
        now.atomic = atomic && m->atomic;
    }
    *m = now;
}

static void must_be_ordered(const struct mark *m, unsigned thread, bool shared, const char *what, const void *from)
{
    if (!is_unordered(m, thread, shared))
        return;
    std::string mine = place_of(from), others = place_of(m->from);
    die("race: %s in %s memory at %s; thread %u of block %u was at %s", what, shared ? "shared" : "device",
        mine.c_str(), m->thread, m->block, others.c_str());
}

void access(const void *at, size_t bytes, enum access kind, const void *from)
{
    uintptr_t first = (uintptr_t)at / GRANULE * GRANULE, end = (uintptr_t)at + bytes;
    bool atomic = kind == ATOMIC;

    if (!current)
        return;
    enum where where = where_is(at, bytes, from);
    if (where == OWN)
        return;
    bool shared = where == SHARED;
    unsigned thread = (unsigned)(current->warp * 32 + current->lane);
    if (!shared && kind != WRITE)
        bytes_read += bytes;
    if (!shared && kind != READ)
        bytes_written += bytes;
    for (uintptr_t p = first; p < end; p += GRANULE) {
        struct cell *c = cell_of(p);
        if (!(atomic && c->write.atomic))
            must_be_ordered(&c->write, thread, shared, kind == READ ? "a read after a write" : "a write after a write",
                            from);
        if (kind != READ && !(atomic && c->read.atomic))
            must_be_ordered(&c->read, thread, shared, "a write after a read", from);
        if (kind != WRITE)
            leave_mark(&c->read, thread, atomic, shared, from);
        if (kind != READ)
            leave_mark(&c->write, thread, atomic, shared, from);
    }
}

void begin_races()
{
    n_launches++;
    bytes_read = bytes_written = 0;
}

void end_races(const char *kernel)
{
    count((std::string(kernel) + ", bytes read").c_str(), bytes_read);
    count((std::string(kernel) + ", bytes written").c_str(), bytes_written);
}

} // namespace emu

using namespace emu;

/* ---- what the compiler calls --------------------------------------------- */

#define HERE __builtin_return_address(0)

extern "C" {
void __tsan_init()
{
}
void __tsan_func_entry(void *)
{
}
void __tsan_func_exit()
{
}
void __tsan_vptr_update(void **, void *)
{
}
void __tsan_vptr_read(void **)
{
}
void __tsan_read_range(void *at, unsigned long bytes)
{
    access(at, bytes, READ, HERE);
}
void __tsan_write_range(void *at, unsigned long bytes)
{
    access(at, bytes, WRITE, HERE);
}
#define SIZED(n)                                                                                                       \
    void __tsan_read##n(void *at)                                                                                      \
    {                                                                                                                  \
        access(at, n, READ, HERE);                                                                                     \
    }                                                                                                                  \
    void __tsan_write##n(void *at)                                                                                     \
    {                                                                                                                  \
        access(at, n, WRITE, HERE);                                                                                    \
    }                                                                                                                  \
    void __tsan_unaligned_read##n(void *at)                                                                            \
    {                                                                                                                  \
        access(at, n, READ, HERE);                                                                                     \
    }                                                                                                                  \
    void __tsan_unaligned_write##n(void *at)                                                                           \
    {                                                                                                                  \
        access(at, n, WRITE, HERE);                                                                                    \
    }
SIZED(1)
SIZED(2)
SIZED(4)
SIZED(8)
SIZED(16)
#define ATOMICS(bits, type)                                                                                            \
    type __tsan_atomic##bits##_load(const volatile type *at, int)                                                      \
    {                                                                                                                  \
        access(const_cast<const type *>(at), bits / 8, ATOMIC, HERE);                                                  \
        return *at;                                                                                                    \
    }                                                                                                                  \
    type __tsan_atomic##bits##_fetch_add(volatile type *at, type value, int)                                           \
    {                                                                                                                  \
        access(const_cast<const type *>(at), bits / 8, ATOMIC, HERE);                                                  \
        return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);                                                        \
    }                                                                                                                  \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile type *at, type *was, type value, int, int)              \
    {                                                                                                                  \
        access(const_cast<const type *>(at), bits / 8, ATOMIC, HERE);                                                  \
        return __atomic_compare_exchange_n(at, was, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);                 \
    }                                                                                                                  \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile type *at, type *was, type value, int, int)                \
    {                                                                                                                  \
        access(const_cast<const type *>(at), bits / 8, ATOMIC, HERE);                                                  \
        return __atomic_compare_exchange_n(at, was, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);                 \
    }                                                                                                                  \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *at, type was, type value, int, int)                 \
    {                                                                                                                  \
        access(const_cast<const type *>(at), bits / 8, ATOMIC, HERE);                                                  \
        __atomic_compare_exchange_n(at, &was, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);                       \
        return was;                                                                                                    \
    }
ATOMICS(32, unsigned)
ATOMICS(64, unsigned long)
}

#endif
