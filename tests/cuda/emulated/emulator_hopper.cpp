/* emulator_hopper.cpp - what compute capability 9.0 adds to arithmetic: products of warpgroups (wgmma) with their tiles
 * in shared memory, and registers that warpgroups give each other (setmaxnreg). Its copies: emulator_phases.cpp.
 *
 * Written from the PTX ISA's chapters on these instructions. A product is asynchronous: it happens when it starts or
 * when it is waited for, as EMU_ASYNC says, and reads shared memory and registers then. Ends the process at: a product
 * whose registers no fence names since the last wait, or that reads copies which nothing fenced; a wait that leaves out
 * a result or names registers in use; products that are never waited for; warps of a warpgroup that do not multiply the
 * same; more registers than the block has.
 */
#include "tests/cuda/emulated/cuda_primitives.h"

#include <vector>

namespace emu
{

enum {
    UNIT = 16, // bytes of shared memory
    UNITS = (256 << 10) / UNIT,
    ROW = 128, // bytes of a row of a tile
    BLOCK_REGISTERS = 64 << 10,
};

/* Of a warp: one product, and the registers of its lanes. */
struct warp_product {
    struct group_product p;
    const uint32_t *a[32];
    float *d[32];
    place from;
    bool done;
};

struct warp_queue {
    std::vector<warp_product> waiting; // for a wgmma_wait(), in their order
    std::vector<size_t> groups;        // how many of them are in each group
    size_t started;                    // how many are in no group
    uint64_t digest;                   // of all products
    int registers;                     // of each thread; 0: as at the launch
};

struct registers {
    const char *at;
    size_t bytes;
};

static struct warp_queue queues[MAX_THREADS / 32];
static std::vector<struct registers> fenced[MAX_THREADS], named[MAX_THREADS];
static int n_warps;
static place at_place; // of the operation of the last lane

static int thread()
{
    return current->warp * 32 + current->lane;
}

/* ---- tiles ------------------------------------------------------------------------------ */

/* A descriptor, in the bits of a device's. */
uint64_t product_tile(const void *at, int panel_bytes, place here)
{
    size_t offset = shared_address(at);

    if (!in_shared(at, UNIT) || offset % UNIT)
        die("wgmma_tile at %s:%d: not an aligned address of shared memory", here.file, here.line);
    return offset / UNIT | (uint64_t)(panel_bytes / UNIT) << 16 | (uint64_t)(8 * ROW / UNIT) << 32 | (uint64_t)1 << 62;
}

struct tile {
    size_t begin, leading, stride;
};

static struct tile tile_of(uint64_t word, place from)
{
    const uint64_t field = 0x3fff;
    struct tile t = { (size_t)(word & field) * UNIT, (size_t)(word >> 16 & field) * UNIT,
                      (size_t)(word >> 32 & field) * UNIT };

    if (word >> 62 != 1 || (word >> 49 & 7) != 0)
        die("the product at %s:%d: a tile without the 128-byte swizzle", from.file, from.line);
    if (t.begin / ROW % 8)
        die("the product at %s:%d: a tile that begins at row %zu of 8", from.file, from.line, t.begin / ROW % 8);
    return t;
}

/* The eight numbers at an offset before the swizzle. */
static void load_unit(float to[8], size_t offset, place from)
{
    uint16_t numbers[8];
    offset ^= (offset / ROW & 7) * UNIT;
    const char *at = shared_begin() + offset;

    if (offset / UNIT >= UNITS || !in_shared(at, UNIT))
        die("the product at %s:%d reads outside shared memory", from.file, from.line);
    if (why_unreadable(offset))
        die("the product at %s:%d reads a copy that %s", from.file, from.line, why_unreadable(offset));
    __builtin_memcpy(numbers, at, UNIT);
    for (int i = 0; i < 8; i++)
        to[i] = bf16_to_float(numbers[i]);
}

/* n rows of 16 columns: rows are contiguous ("K-major"). */
static void load_rows(float (*to)[16], uint64_t word, int first, int n, place from)
{
    struct tile t = tile_of(word, from);

    for (int i = 0; i < n; i++)
        for (int u = 0; u < 2; u++) {
            size_t row = (size_t)(first + i);
            load_unit(to[i] + 8 * u, t.begin + row % 8 * ROW + row / 8 * t.stride + (size_t)u * UNIT, from);
        }
}

/* 16 rows of n columns, the same for the transposed matrix ("MN-major"). */
static void load_columns(float (*to)[128], uint64_t word, int n, place from)
{
    struct tile t = tile_of(word, from);

    for (size_t row = 0; row < 16; row++)
        for (size_t u = 0; u < (size_t)n / 8; u++)
            load_unit(to[row] + 8 * u, t.begin + row % 8 * ROW + row / 8 * t.stride + u % 8 * UNIT + u / 8 * t.leading,
                      from);
}

/* ---- products ----------------------------------------------------------------------------- */

static void load_left(float a[16][16], const struct warp_product *w, int warp)
{
    if (!w->p.a) {
        load_rows(a, w->p.tile, warp % 4 * 16, 16, w->from);
        return;
    }
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 2; j++)
                a[l / 4 + 8 * (i & 1)][2 * (l % 4) + j + 8 * (i >> 1)] =
                    bf16_to_float((uint16_t)(w->a[l][i] >> 16 * j));
}

static void load_right(float b[16][128], const struct warp_product *w)
{
    float rows[128][16];

    if (w->p.a) {
        load_columns(b, w->p.b, w->p.n, w->from);
        return;
    }
    load_rows(rows, w->p.b, 0, w->p.n, w->from);
    for (int k = 0; k < 16; k++)
        for (int column = 0; column < w->p.n; column++)
            b[k][column] = rows[column][k];
}

/* Of register i of a lane. */
static int row_of(int lane, int i)
{
    return lane / 4 + 8 * (i % 4 / 2);
}
static int column_of(int lane, int i)
{
    return i / 4 * 8 + 2 * (lane % 4) + i % 2;
}

/* The warp's 16 rows of it. */
static void multiply(const struct warp_product *w, int warp)
{
    float a[16][16], b[16][128], d[16][128] = {};

    load_left(a, w, warp);
    load_right(b, w);
    for (int l = 0; l < 32 && w->p.add; l++)
        for (int i = 0; i < w->p.n / 2; i++)
            d[row_of(l, i)][column_of(l, i)] = w->d[l][i];
    for (int row = 0; row < 16; row++)
        for (int k = 0; k < 16; k++)
            for (int column = 0; column < 128; column++)
                d[row][column] += a[row][k] * (column < w->p.n ? b[k][column] : 0);
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < w->p.n / 2; i++)
            w->d[l][i] = d[row_of(l, i)][column_of(l, i)];
}

/* The first n products of the queue happen, where they have not. */
static void do_products(struct warp_queue *q, size_t n, int warp)
{
    for (size_t i = 0; i < n; i++) {
        if (!q->waiting[i].done)
            multiply(&q->waiting[i], warp);
        q->waiting[i].done = true;
    }
}

static bool holds(const std::vector<struct registers> &of, const void *at, size_t bytes)
{
    for (const struct registers &r : of)
        if (at >= r.at && static_cast<const char *>(at) + bytes <= r.at + r.bytes)
            return true;
    return false;
}

static size_t result_bytes(const struct warp_product *w)
{
    return (size_t)w->p.n / 2 * sizeof(float);
}

static void must_be_fenced(const struct warp_product *w, int warp)
{
    for (int l = 0; l < 32; l++) {
        const std::vector<struct registers> &mine = fenced[warp * 32 + l];
        if (!holds(mine, w->d[l], result_bytes(w)) || (w->a[l] && !holds(mine, w->a[l], 4 * sizeof(uint32_t))))
            die("the product at %s:%d: registers that no wgmma_fence() names since the last wgmma_wait()", w->from.file,
                w->from.line);
    }
}

/* The words of a lane: pointers and numbers, two words each. */
struct brought {
    uint64_t a, b, tile, d;
    uint32_t n, add;
};
static_assert(sizeof(struct brought) <= sizeof(uint32_t) * WARP_WORDS, "a lane brings that many words");

static void start(struct warp_words *words)
{
    struct unseen unseen;
    struct warp_queue *q = &queues[current->warp];
    struct warp_product w = {};
    struct brought first, its;

    __builtin_memcpy(&first, words->in[0], sizeof(first));
    for (int l = 0; l < 32; l++) {
        __builtin_memcpy(&its, words->in[l], sizeof(its));
        if (its.b != first.b || its.tile != first.tile || its.n != first.n || its.add != first.add)
            die("the product at %s:%d: the lanes have different tiles", at_place.file, at_place.line);
        w.a[l] = reinterpret_cast<const uint32_t *>(its.a);
        w.d[l] = reinterpret_cast<float *>(its.d);
    }
    w.p = { (int)first.n, first.add != 0, first.tile, first.b, w.a[0], w.d[0] };
    w.from = at_place;
    must_be_fenced(&w, current->warp);
    q->digest = (q->digest + first.b * 3 + first.tile * 5 + first.n + first.add) * 0x9e3779b97f4a7c15u;
    q->waiting.push_back(w);
    q->started++;
    if (happens_now())
        do_products(q, q->waiting.size(), current->warp);
}

static void commit(struct warp_words *)
{
    struct unseen unseen;
    struct warp_queue *q = &queues[current->warp];

    q->groups.push_back(q->started);
    q->started = 0;
}

/* The oldest product is waited for. */
static void end_one(struct warp_queue *q, int warp)
{
    struct warp_product *w = &q->waiting.front();

    do_products(q, 1, warp);
    for (int l = 0; l < 32; l++)
        if (!holds(named[warp * 32 + l], w->d[l], result_bytes(w)))
            die("wgmma_wait() does not name the result of the product at %s:%d", w->from.file, w->from.line);
    q->waiting.erase(q->waiting.begin());
}

static void wait_for_products(struct warp_words *words)
{
    struct unseen unseen;
    int warp = current->warp;
    struct warp_queue *q = &queues[warp];

    while (q->groups.size() > words->in[0][0]) {
        for (size_t i = 0; i < q->groups.front(); i++)
            end_one(q, warp);
        q->groups.erase(q->groups.begin());
    }
    for (int l = 0; l < 32; l++) {
        for (const struct warp_product &w : q->waiting)
            if (holds(named[warp * 32 + l], w.d[l], 1) || (w.a[l] && holds(named[warp * 32 + l], w.a[l], 1)))
                die("wgmma_wait() names registers of the product at %s:%d, which may still run", w.from.file,
                    w.from.line);
        fenced[warp * 32 + l].clear();
        named[warp * 32 + l].clear();
    }
}

static void nothing(struct warp_words *)
{
}

static const struct warp_op op_start = { "a product of a warpgroup", start }, op_fence = { "wgmma_fence", nothing },
                            op_commit = { "wgmma_commit", commit }, op_wait = { "wgmma_wait", wait_for_products };

static void together(const struct warp_op *op, const uint32_t *in, int n_words, place here)
{
    at_place = here;
    warp_do(op, 0xffffffffu, in, n_words, here);
}

void product_fence(const void *at, size_t bytes)
{
    struct unseen unseen;
    fenced[thread()].push_back({ static_cast<const char *>(at), bytes });
}

void products_fence(place here)
{
    together(&op_fence, NULL, 0, here);
}

void product_start(struct group_product p, place here)
{
    struct brought its = { reinterpret_cast<uint64_t>(p.a), p.b,           p.tile,
                           reinterpret_cast<uint64_t>(p.d), (uint32_t)p.n, p.add };
    uint32_t words[WARP_WORDS] = {};

    must_be_hopper("a product of a warpgroup", here);
    __builtin_memcpy(words, &its, sizeof(its));
    together(&op_start, words, WARP_WORDS, here);
}

void product_commit(place here)
{
    together(&op_commit, NULL, 0, here);
}

void product_named(const void *at, size_t bytes)
{
    struct unseen unseen;
    named[thread()].push_back({ static_cast<const char *>(at), bytes });
}

void product_wait(int n_left, place here)
{
    uint32_t word = (uint32_t)n_left;

    together(&op_wait, &word, 1, here);
}

/* ---- registers ------------------------------------------------------------------------------ */

static int at_launch(int n_threads)
{
    int n = BLOCK_REGISTERS / n_threads / 8 * 8;
    return n < 248 ? n : 248;
}

static const struct warp_op op_registers = { "registers_give or registers_take", nothing };

void set_registers(int n, bool more, place here)
{
    struct warp_queue *q = &queues[current->warp];
    int has = q->registers ? q->registers : at_launch(n_warps * 32);

    if (more ? n < has : n > has)
        die("registers_%s at %s:%d: %d, and the thread has %d", more ? "take" : "give", here.file, here.line, n, has);
    together(&op_registers, NULL, 0, here);
    q->registers = n;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

void begin_products(int n_threads)
{
    struct unseen unseen;
    n_warps = n_threads / 32;
    for (int i = 0; i < n_warps; i++)
        queues[i] = {};
    for (int i = 0; i < n_threads; i++) {
        fenced[i].clear();
        named[i].clear();
    }
    begin_phases(n_threads);
}

void end_products()
{
    struct unseen unseen;
    int in_all = 0, n_threads = n_warps * 32;

    end_phases();
    for (int i = 0; i < n_warps; i++) {
        const struct warp_queue *q = &queues[i], *first = &queues[i / 4 * 4];
        if (!q->waiting.empty())
            die("the product at %s:%d was never waited for", q->waiting[0].from.file, q->waiting[0].from.line);
        if (q->digest != first->digest || (q->digest && n_warps % 4))
            die("the warps of warpgroup %d do not multiply the same", i / 4);
        if (q->registers != first->registers)
            die("the warps of warpgroup %d do not have the same number of registers", i / 4);
        in_all += 32 * (q->registers ? q->registers : at_launch(n_threads));
    }
    if (in_all > n_threads * at_launch(n_threads))
        die("the warpgroups take %d registers, and the block has %d", in_all, n_threads * at_launch(n_threads));
}

} // namespace emu
