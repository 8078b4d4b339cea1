/* emulator_phases.cpp - what compute capability 9.0 adds to copies: barriers of phases (mbarrier), boxes of tensor maps
 * (cp.async.bulk.tensor), and what a fence must make known to other ways to shared memory (fence.proxy.async).
 *
 * Written from the PTX ISA's chapters on these instructions, and from the driver's documentation of tensor maps. A box
 * is asynchronous: it happens when it starts, or when its phase is waited for, as EMU_ASYNC says. Ends the process at:
 * boxes that bring more bytes than their phase expects, or that nobody waits for; phases left with bytes that never
 * came; a box to memory that another copy is on its way to, or that was written and not fenced; a phase that boxes use
 * and whose beginning was not fenced; maps that are none, not a parameter of the kernel, or of rows that are not the
 * device's.
 */
#include "tests/cuda/emulated/cuda_primitives.h"
#include "tests/cuda/emulated/emulated_runtime.h"

#include <vector>

namespace emu
{

enum { UNIT = 16, UNITS = (256 << 10) / UNIT, ROW = 128 }; // bytes; units of shared memory; bytes of a swizzled row
enum unit_state : char { FREE, COPYING, COPIED };

static char states[UNITS];
static std::vector<size_t> copied[MAX_THREADS];    // units that wait for a fence
static std::vector<uint64_t *> begun[MAX_THREADS]; // phases, too
static std::vector<uint64_t *> phases;             // all

static size_t unit_of(const void *at)
{
    return (size_t)(static_cast<const char *>(at) - shared_begin()) / UNIT;
}

static int thread()
{
    return current->warp * 32 + current->lane;
}

void must_be_hopper(const char *what, place here)
{
    if (device_sm() != 90)
        die("%s at %s:%d: on compute capability %d.%d, not 9.0", what, here.file, here.line, device_sm() / 10,
            device_sm() % 10);
}

/* ---- barriers of phases --------------------------------------------------------------- */

/* In a word: arrivals that are missing, arrivals of a phase, the parity of the phase that runs, whether its beginning
 * was fenced, a sign, and bytes that are missing. */
struct phase {
    uint64_t missing : 11, all : 11, parity : 1, fenced : 1, sign : 16;
    int64_t bytes : 24;
};
static_assert(sizeof(struct phase) == sizeof(uint64_t), "a phase is a word");
enum { SIGN = 0x3b17, MOST_ARRIVALS = 1024, MOST_BYTES = (1 << 20) - 1 };

static struct phase read_phase(const uint64_t *at, const char *what, place here)
{
    struct phase p;

    if (!in_shared(at, sizeof(p)) || (uintptr_t)at % sizeof(p))
        die("%s at %s:%d: not an aligned word of shared memory", what, here.file, here.line);
    __builtin_memcpy(&p, at, sizeof(p));
    if (p.sign != SIGN)
        die("%s at %s:%d: before phase_init()", what, here.file, here.line);
    return p;
}

/* The same, of one that boxes use. */
static struct phase read_fenced(const uint64_t *at, const char *what, place here)
{
    struct phase p = read_phase(at, what, here);

    if (!p.fenced)
        die("%s at %s:%d: no shared_fence_async() came after phase_init()", what, here.file, here.line);
    return p;
}

/* Ends the phase when nothing is missing any more. */
static void write_phase(uint64_t *at, struct phase p, place here)
{
    if (p.missing == 0 && p.bytes < 0)
        die("boxes bring %d bytes more than the phase at %s:%d expects", (int)-p.bytes, here.file, here.line);
    if (p.missing == 0 && p.bytes == 0) {
        p.missing = p.all;
        p.parity ^= 1;
#ifdef EMU_RACE
        phase_ends(at);
#endif
    }
    __builtin_memcpy(at, &p, sizeof(p));
    wake_at(at);
}

void phase_init(uint64_t *at, int n, place here)
{
    struct unseen unseen;
    struct phase p = { (uint64_t)n, (uint64_t)n, 0, 0, SIGN, 0 };

    must_be_hopper("phase_init", here);
    if (n < 1 || n > MOST_ARRIVALS)
        die("phase_init at %s:%d: %d arrivals", here.file, here.line, n);
    if (!in_shared(at, sizeof(p)) || (uintptr_t)at % sizeof(p))
        die("phase_init at %s:%d: not an aligned word of shared memory", here.file, here.line);
    __builtin_memcpy(at, &p, sizeof(p));
    begun[thread()].push_back(at);
    phases.push_back(at);
}

static void arrive(uint64_t *at, struct phase p, place here)
{
    if (p.missing == 0)
        die("an arrival at %s:%d more than the phase has", here.file, here.line);
    p.missing--;
#ifdef EMU_RACE
    phase_learns(at);
#endif
    write_phase(at, p, here);
}

void phase_arrive(uint64_t *at, place here)
{
    arrive(at, read_phase(at, "phase_arrive", here), here);
}

void phase_arrive_bytes(uint64_t *at, int bytes, place here)
{
    struct phase p = read_fenced(at, "phase_arrive_bytes", here);

    if (bytes < 0 || bytes > MOST_BYTES)
        die("phase_arrive_bytes at %s:%d: %d bytes", here.file, here.line, bytes);
    p.bytes += bytes;
    arrive(at, p, here);
}

static bool land_one(const uint64_t *at);

void phase_wait(uint64_t *at, unsigned parity, place here)
{
    if (parity > 1)
        die("phase_wait at %s:%d: parity %u", here.file, here.line, parity);
    while (read_phase(at, "phase_wait", here).parity == parity)
        if (!land_one(at))
            sleep_at(at, "phase_wait", here);
    learn_from(at);
#ifdef EMU_RACE
    thread_learns(at);
#endif
}

/* ---- what other ways to shared memory may not use yet ----------------------------------- */

void copy_begins(const void *at)
{
    states[unit_of(at)] = COPYING;
}

void copy_ends(const void *at)
{
    struct unseen unseen;
    states[unit_of(at)] = COPIED;
    copied[thread()].push_back(unit_of(at));
}

void fence_async()
{
    struct unseen unseen;
    for (size_t unit : copied[thread()])
        if (states[unit] == COPIED)
            states[unit] = FREE;
    copied[thread()].clear();
    for (uint64_t *at : begun[thread()]) {
        struct phase p;
        __builtin_memcpy(&p, at, sizeof(p));
        p.fenced = 1;
        __builtin_memcpy(at, &p, sizeof(p));
    }
    begun[thread()].clear();
}

void clear_unit(void *at, place here)
{
    if ((uintptr_t)at % UNIT || !in_shared(at, UNIT))
        die("shared_clear_16 at %s:%d: not 16 aligned bytes of shared memory", here.file, here.line);
    if (states[unit_of(at)] == COPYING)
        die("shared_clear_16 at %s:%d: a copy is on its way there", here.file, here.line);
    tell_of_unit(at, true);
    __builtin_memset(at, 0, UNIT);
    copy_ends(at);
}

const char *why_unreadable(size_t offset)
{
    static const char *const why[] = { NULL, "nobody waited for", "no shared_fence_async() came after" };

    return why[(int)states[offset / UNIT]];
}

/* ---- tensor maps -------------------------------------------------------------------------- */

/* What CUtensorMap holds: two dimensions of 16-bit numbers. */
struct map {
    uint64_t sign;
    const char *at;
    uint64_t columns, rows, pitch; // pitch: bytes
    uint32_t box_columns, box_rows;
};
static_assert(sizeof(struct map) <= sizeof(CUtensorMap), "a map fits");
constexpr uint64_t MAP_SIGN = 0x70616d5f726f736e;

struct box {
    struct map map;
    char *to;
    int column, row;
    uint64_t *full;
    place from;
};
static std::vector<struct box> on_their_way;

static uint32_t box_bytes(const struct map *m)
{
    return m->box_columns * 2 * m->box_rows;
}

/* Unit i of a box: its address, by the 128-byte swizzle. */
static char *unit_at(const struct box *b, uint32_t i)
{
    size_t offset = (size_t)(b->to - shared_begin()) + (size_t)i * UNIT;
    return shared_begin() + (offset ^ (offset / ROW & 7) * UNIT);
}

/* Its numbers on the device; *n: bytes of them, the others are beyond the map. */
static const char *source_of(const struct box *b, uint32_t i, size_t *n)
{
    const uint32_t units = b->map.box_columns * 2 / UNIT;
    int64_t row = b->row + (int64_t)(i / units), column = b->column + (int64_t)(i % units) * (UNIT / 2);
    const char *at = b->map.at + row * (int64_t)b->map.pitch + column * 2;
    bool inside = row >= 0 && row < (int64_t)b->map.rows && column >= 0 && column < (int64_t)b->map.columns;

    *n = !inside                                       ? 0
         : (int64_t)b->map.columns - column < UNIT / 2 ? (size_t)((int64_t)b->map.columns - column) * 2
                                                       : (size_t)UNIT;
    if (*n && !on_device(at, *n))
        die("copy_box at %s:%d: row %lld of the map is not in the device's memory", b->from.file, b->from.line,
            (long long)row);
    return at;
}

static void do_box(const struct box *b)
{
    for (uint32_t i = 0; i < box_bytes(&b->map) / UNIT; i++) {
        char numbers[UNIT] = {};
        size_t n;
        const char *from = source_of(b, i, &n);
        __builtin_memcpy(numbers, from, n);
        __builtin_memcpy(unit_at(b, i), numbers, UNIT);
        states[unit_of(unit_at(b, i))] = FREE;
    }
    struct phase p = read_phase(b->full, "copy_box", b->from);
    p.bytes -= box_bytes(&b->map);
    write_phase(b->full, p, b->from);
}

/* The oldest box of a phase happens. False: there is none. */
static bool land_one(const uint64_t *at)
{
    struct unseen unseen;

    for (size_t i = 0; i < on_their_way.size(); i++)
        if (on_their_way[i].full == at) {
            struct box b = on_their_way[i];
            on_their_way.erase(on_their_way.begin() + (ptrdiff_t)i);
            do_box(&b);
            return true;
        }
    return false;
}

static void check_box(const struct box *b)
{
    const char *file = b->from.file;
    int line = b->from.line;

    if ((uintptr_t)b->to % ROW || !in_shared(b->to, box_bytes(&b->map)))
        die("copy_box at %s:%d: not to 128-byte aligned shared memory that holds the box", file, line);
    for (uint32_t i = 0; i < box_bytes(&b->map) / UNIT; i++) {
        const char *why = why_unreadable((size_t)(unit_at(b, i) - shared_begin()));
        if (why)
            die("copy_box at %s:%d: over what %s", file, line, why);
    }
}

/* The accesses of the thread; it may happen from now on. */
static void begin_box(const struct box *b)
{
    for (uint32_t i = 0; i < box_bytes(&b->map) / UNIT; i++) {
        size_t n;
        const char *from = source_of(b, i, &n);
        if (n == UNIT)
            tell_of_unit(from, false);
        tell_of_unit(unit_at(b, i), true);
        states[unit_of(unit_at(b, i))] = COPYING;
    }
}

void copy_box(void *to, const CUtensorMap *map, int column, int row, uint64_t *full, place here)
{
    struct unseen unseen;
    struct box b = { {}, static_cast<char *>(to), column, row, full, here };

    must_be_hopper("copy_box", here);
    __builtin_memcpy(&b.map, map, sizeof(b.map));
    if (b.map.sign != MAP_SIGN || (uintptr_t)map % alignof(CUtensorMap) || !is_own(reinterpret_cast<const char *>(map)))
        die("copy_box at %s:%d: not a tensor map among the kernel's parameters", here.file, here.line);
    read_fenced(full, "copy_box", here);
    check_box(&b);
    begin_box(&b);
#ifdef EMU_RACE
    phase_learns(full);
#endif
    if (happens_now())
        do_box(&b);
    else
        on_their_way.push_back(b);
    wake_at(full);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

void begin_phases(int n_threads)
{
    struct unseen unseen;

    for (int i = 0; i < n_threads; i++) {
        copied[i].clear();
        begun[i].clear();
    }
    phases.clear();
    __builtin_memset(states, FREE, sizeof(states));
#ifdef EMU_RACE
    forget_phases();
#endif
}

void end_phases()
{
    struct unseen unseen;

    if (!on_their_way.empty())
        die("nobody waited for the box at %s:%d", on_their_way[0].from.file, on_their_way[0].from.line);
    for (const uint64_t *at : phases) {
        struct phase p;
        __builtin_memcpy(&p, at, sizeof(p));
        if (p.sign == SIGN && p.bytes != 0)
            die("a phase is left in which %d bytes are missing", (int)p.bytes);
    }
}

} // namespace emu

using namespace emu;

/* As the driver refuses; of what it takes, copies know two dimensions of bf16 with a 128-byte swizzle. */
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *at,
                                const cuuint64_t *sizes, const cuuint64_t *pitches, const cuuint32_t *box,
                                const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill)
{
    const cuuint64_t most = (cuuint64_t)1 << 32;

    if ((uintptr_t)map % alignof(CUtensorMap) || (uintptr_t)at % 16 || rank < 1 || rank > 5)
        return CUDA_ERROR_INVALID_VALUE;
    for (cuuint32_t i = 0; i < rank; i++)
        if (sizes[i] < 1 || sizes[i] > most || box[i] < 1 || box[i] > 256 || steps[i] < 1 || steps[i] > 8 ||
            (i > 0 && (pitches[i - 1] % 16 || pitches[i - 1] >= (cuuint64_t)1 << 40)))
            return CUDA_ERROR_INVALID_VALUE;
    if (box[0] * 2 % 16 || (swizzle == CU_TENSOR_MAP_SWIZZLE_128B && box[0] * 2 > ROW))
        return CUDA_ERROR_INVALID_VALUE;
    if (rank != 2 || type != CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 || swizzle != CU_TENSOR_MAP_SWIZZLE_128B ||
        interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || box[0] * 2 != ROW || steps[0] != 1 || steps[1] != 1)
        die("cuTensorMapEncodeTiled: a map that the emulator has no copies for");
    const struct map its = { MAP_SIGN, static_cast<const char *>(at), sizes[0], sizes[1], pitches[0], box[0], box[1] };
    __builtin_memset(map, 0, sizeof(*map));
    __builtin_memcpy(map, &its, sizeof(its));
    return CUDA_SUCCESS;
}
