/* lists.cu - what the host code of the cuda backend queues for given shapes, without computing anything: launches,
 * blocks, states and turns of attention. A program over the emulated device with EMU_RUN=0; tests/cuda/check writes the
 * passes of a job to its stdin, and compares what it prints with what tests/bench/roofline.py counts.
 *
 *     lists HEADS KV_HEADS HEAD_DIM PASS_ROWS N_KEYS      sizes of the model and of the work that is planned
 *
 * stdin, a line each: `pass` begins new spans; `layer` begins a layer, without products; `shared`, `own` or `text`,
 * followed by spans ROWS:KEYS, or ROWS:KEYS,KEYS,... with the keys of each kv head, is a job of that layer. The last
 * keys of own and text are those of the rows. For each job it prints launches, items, merges, states (of the largest
 * turn), turns, and whether its list was made for it; for each layer its launches.
 *
 * Every list is checked: each row and key that it sees are in exactly one item; each state has one row and piece; each
 * row with several pieces is in one merge; the items of a turn have ever fewer keys; the grids have a block for each
 * item and merge, or one for each multiprocessor, which then share the items.
 */
#include "kernels/cuda/cuda_attend_internal.h"

#include <algorithm>
#include <iostream>
#include <sstream>
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <vector>

#include "kernels/cuda/cuda.h"

extern "C" const struct cuda_plugin CUDA_PLUGIN_SYMBOL;

enum { WIDTH = 4096, MLP = 14336, VOCABULARY = 128256 }; // of Llama-3.1-8B

struct program {
    struct backend *be;
    struct cuda *c;
    int H, G, K;
    bool in_layer;
    uint64_t launches_before; // the layer
};

/* A job's spans, and the rows of its table. */
struct work {
    std::vector<struct attn_span> span;
    std::vector<struct kv_rows> rows;
    int tokens;
};

[[noreturn]] static void stop(const char *why, int a = 0, int b = 0)
{
    fprintf(stderr, "lists: %s (%d, %d)\n", why, a, b);
    exit(1);
}

/* An address on the device that nothing reads. */
static void *somewhere()
{
    return (void *)(uintptr_t)4096;
}

static struct mat dense(enum dtype type, int rows, int cols)
{
    return { somewhere(), type, rows, cols, cols };
}

/* ---- checks ----------------------------------------------------------------- */

/* Keys that row r of a pair sees. */
static int seen_by(const struct attn_job &job, int pair, int r, int n_keys)
{
    const struct attn_span &span = job.spans.host[pair / job.n_kv_heads];
    int group = job.n_heads / job.n_kv_heads;
    bool causal = job.kind == ATTN_TEXT || job.kind == ATTN_OWN;

    return causal ? std::max(0, span.n_keys - span.n_rows + r / group + 1) : n_keys;
}

/* What a list does: (row, piece) of every pair, and the states of a turn. */
struct done {
    const struct attn_job &job;
    const struct attend_list &l;
    std::vector<size_t> at;     // (pairs): where a pair's rows begin in `piece`
    std::vector<uint8_t> piece; // bit p: piece p of the row has been computed
    std::vector<uint8_t> merged;
    std::vector<int64_t> state; // of the turn: the row that has it, and its piece
    int tile_rows;
};

static int pair_rows(const struct done &d, int pair)
{
    return d.job.spans.host[pair / d.job.n_kv_heads].n_rows * (d.job.n_heads / d.job.n_kv_heads);
}

static int blocks_of_keys(const struct done &d, const struct attend_item &item)
{
    int n_keys = d.l.n_keys[item.pair], rows = pair_rows(d, item.pair);
    int keys = attend_piece_keys(d.job, d.job.spans.host[item.pair / d.job.n_kv_heads], n_keys, MAX_PIECES);
    int last = std::min(item.first + d.tile_rows, rows) - 1;
    int end = std::min({ (item.piece + 1) * keys, seen_by(d.job, item.pair, last, n_keys), n_keys });

    return (std::max(0, end - item.piece * keys) + 63) / 64;
}

static void check_item(struct done *d, const struct attend_item &item)
{
    int rows = pair_rows(*d, item.pair), n_keys = d->l.n_keys[item.pair];
    int pieces = attend_n_pieces(d->job, d->job.spans.host[item.pair / d->job.n_kv_heads], n_keys, MAX_PIECES);

    if (item.n_pieces != pieces || item.piece >= pieces || (item.state < 0) != (pieces == 1))
        stop("an item with a wrong number of pieces", item.pair, item.first);
    if (item.first >= rows || (item.piece > 0 && blocks_of_keys(*d, item) == 0))
        stop("an item without work", item.pair, item.first);
    for (int r = item.first; r < std::min(item.first + d->tile_rows, rows); r++) {
        uint8_t &mine = d->piece[d->at[item.pair] + r];
        if (mine >> item.piece & 1)
            stop("a piece of a row is computed twice", item.pair, r);
        mine |= (uint8_t)(1 << item.piece);
        if (item.state < 0)
            continue;
        size_t state = (size_t)(item.state + (r - item.first) * pieces);
        if (state >= d->state.size() || d->state[state] >= 0)
            stop("two states in one place, or one beyond the last", item.pair, r);
        d->state[state] = (int64_t)(d->at[item.pair] + r) * MAX_PIECES + item.piece;
    }
}

static void check_merge(struct done *d, const struct attend_item &item)
{
    int rows = pair_rows(*d, item.pair), n_keys = d->l.n_keys[item.pair];
    int keys = attend_piece_keys(d->job, d->job.spans.host[item.pair / d->job.n_kv_heads], n_keys, MAX_PIECES);

    if (item.first >= rows)
        stop("a merge without rows", item.pair, item.first);
    for (int r = item.first; r < std::min(item.first + (int)MERGE_ROWS, rows); r++) {
        int seen = std::min(seen_by(d->job, item.pair, r, n_keys), n_keys);
        if (d->merged[d->at[item.pair] + r]++)
            stop("a row is merged twice", item.pair, r);
        for (int piece = 0; piece * keys < seen; piece++)
            if (d->state[(size_t)(item.state + (r - item.first) * item.n_pieces + piece)] !=
                (int64_t)(d->at[item.pair] + r) * MAX_PIECES + piece)
                stop("a row is merged from another one's states", item.pair, r);
    }
}

/* Every row has the pieces with keys that it sees, and is merged if it has several. */
static void check_rows(const struct done &d)
{
    for (int pair = 0; pair < d.l.n_pairs; pair++) {
        const struct attn_span &span = d.job.spans.host[pair / d.job.n_kv_heads];
        int n_keys = d.l.n_keys[pair], keys = attend_piece_keys(d.job, span, n_keys, MAX_PIECES);
        for (int r = 0; r < pair_rows(d, pair); r++) {
            int seen = std::min(seen_by(d.job, pair, r, n_keys), n_keys);
            for (int piece = 0; piece == 0 || piece * keys < seen; piece++)
                if (!(d.piece[d.at[pair] + r] >> piece & 1))
                    stop("a piece of a row is not computed", pair, r);
            if (d.merged[d.at[pair] + r] != (attend_n_pieces(d.job, span, n_keys, MAX_PIECES) > 1))
                stop("a row is not merged, or has nothing to merge", pair, r);
        }
    }
}

static void check_list(const struct attn_job &job, const struct attend_list &l, int tile_rows)
{
    struct done d = { job, l, {}, {}, {}, {}, tile_rows };
    size_t rows = 0;

    for (int pair = 0; pair < l.n_pairs; pair++) {
        d.at.push_back(rows);
        rows += (size_t)pair_rows(d, pair);
    }
    d.piece.resize(rows);
    d.merged.resize(rows);
    for (int t = 0; t < l.n_turns; t++) {
        const struct attend_turn &turn = l.turn[t];
        d.state.assign(l.n_states, -1);
        for (int i = turn.first; i < turn.end; i++) {
            check_item(&d, l.item[i]);
            if (i > turn.first && blocks_of_keys(d, l.item[i]) > blocks_of_keys(d, l.item[i - 1]))
                stop("an item has more keys than the one before it", t, i);
        }
        for (int i = turn.first_merge; i < turn.end_merge; i++)
            check_merge(&d, l.merge[i]);
    }
    check_rows(d);
}

/* The blocks that a list needs. Where multiprocessors have one each, every item of a turn is one block's. */
static uint64_t blocks_of(const struct cuda *c, const struct attn_job &job, const struct attend_list &l)
{
    uint64_t blocks = (uint64_t)l.n_merges;

    for (int t = 0; t < l.n_turns; t++) {
        int n = l.turn[t].end - l.turn[t].first;
        int grid = attend_has_wgmma(c, job) ? std::min(n, c->n_multiprocessors) : n;
        std::vector<int> done((size_t)n);
        for (int b = 0; b < grid; b++)
            for (int j = 0; attend_item_of(b, grid, j) < n; j++)
                done[(size_t)attend_item_of(b, grid, j)]++;
        if (std::count(done.begin(), done.end(), 1) != n)
            stop("an item is not one block's", t, n);
        blocks += (uint64_t)grid;
    }
    return blocks;
}

/* ---- jobs ------------------------------------------------------------------- */

static struct work read_spans(std::istringstream &in, enum attn_kind kind, int G)
{
    struct work w = { {}, {}, 0 };
    std::string text;

    while (in >> text) {
        std::istringstream span(text);
        int rows, keys;
        char separator;
        span >> rows >> separator;
        std::vector<int> heads;
        while (span >> keys) {
            heads.push_back(keys);
            span >> separator;
        }
        if (heads.empty())
            stop("a span without keys");
        int first = kind == ATTN_SHARED ? (int)w.span.size() : 0;
        w.span.push_back({ w.tokens, rows, first, heads[0] });
        for (int g = 0; g < G; g++)
            w.rows.push_back({ somewhere(), somewhere(), heads[(size_t)g % heads.size()] });
        w.tokens += rows;
    }
    return w;
}

static void attend(struct program *p, enum attn_kind kind, std::istringstream &in)
{
    struct work w = read_spans(in, kind, p->G);
    struct attn_job job = {};
    struct attend_list *l = &p->c->lists[kind][0];
    uint64_t launches = p->c->n_launches, blocks = p->c->n_blocks;
    int made = l->n_made, longest = 0;

    job.kind = kind;
    job.q = somewhere();
    job.spans = { w.span.data(), (const struct attn_span *)somewhere(), (int)w.span.size(), NULL, p->be->n_numbered };
    job.store = { somewhere(), somewhere(), 1 << 20 };
    job.table = { w.rows.data(), (const struct kv_rows *)somewhere(), 1 };
    job.n_tokens = w.tokens, job.n_heads = p->H, job.n_kv_heads = p->G, job.head_dim = p->K;
    job.scale = 1;
    job.part = job.lse = (float *)somewhere();
    p->be->attend(p->be, &job);
    for (const struct attn_span &span : w.span)
        longest = std::max(longest, span.n_rows * p->H / p->G);
    check_list(job, *l, attend_has_tensor(p->c) ? attend_tensor_rows(longest, p->K) : (int)PLAIN_ROWS);
    blocks = p->c->n_blocks - blocks;
    if (blocks != blocks_of(p->c, job, *l))
        stop("the grids are not the list", (int)blocks, l->n_items + l->n_merges);
    printf("%d %d %d %zu %d %d\n", (int)(p->c->n_launches - launches), l->n_items, l->n_merges, l->n_states, l->n_turns,
           l->n_made - made);
}

/* The ops of a layer that are no products and no attention: engine/transformer/forward.c. */
static void other_ops(struct program *p, int tokens)
{
    struct backend *be = p->be;
    struct rope_job rope = {};
    float *numbers = (float *)somewhere();

    rope.qkv = dense(DTYPE_BF16, tokens, (p->H + 2 * p->G) * p->K);
    rope.position = rope.slot = (const int32_t *)somewhere();
    rope.cos = rope.sin = numbers;
    rope.rotary = rope.head_dim = p->K;
    rope.q = somewhere();
    rope.store = { somewhere(), somewhere(), 1 << 20 };
    rope.n_heads = p->H, rope.n_kv_heads = p->G;
    be->rmsnorm(be, dense(DTYPE_BF16, tokens, WIDTH), dense(DTYPE_F32, tokens, WIDTH), numbers, 1e-5f, GEMM_SET);
    be->rope(be, &rope);
    be->rmsnorm(be, dense(DTYPE_BF16, tokens, WIDTH), dense(DTYPE_F32, tokens, WIDTH), numbers, 1e-5f, GEMM_SET);
    be->gate_mul(be, dense(DTYPE_BF16, tokens, MLP), dense(DTYPE_BF16, tokens, 2 * MLP), GATE_SILU);
}

static void end_layer(struct program *p)
{
    if (p->in_layer)
        printf("layer %d\n", (int)(p->c->n_launches - p->launches_before));
    p->in_layer = false;
}

static void run_line(struct program *p, const std::string &line)
{
    std::istringstream in(line);
    std::string word;

    in >> word;
    if (word == "pass" || word == "layer")
        end_layer(p);
    if (word == "pass") {
        p->be->n_numbered++;
    } else if (word == "layer") {
        p->launches_before = p->c->n_launches;
        p->in_layer = true;
        other_ops(p, 1);
    } else if (word == "shared" || word == "own" || word == "text") {
        attend(p, word == "shared" ? ATTN_SHARED : word == "own" ? ATTN_OWN : ATTN_TEXT, in);
    } else {
        stop("a line that is none");
    }
}

int main(int argc, char **argv)
{
    struct backend_options options = { "cuda", "bf16", false, 0, 0 };
    struct err err = {};
    std::string line;

    if (argc != 6)
        stop("usage: lists HEADS KV_HEADS HEAD_DIM PASS_ROWS N_KEYS");
    struct program p = {
        CUDA_PLUGIN_SYMBOL.open(&options, &err), NULL, atoi(argv[1]), atoi(argv[2]), atoi(argv[3]), false, 0
    };
    if (!p.be)
        stop(err.msg);
    p.c = cuda_of(p.be);
    struct work_shape shape = {
        atoi(argv[4]), p.H, p.G, p.K, atoi(argv[5]), WIDTH, MLP, VOCABULARY, 0, 0, 0, false, 0
    };
    size_t planned = p.be->scratch(p.be, &shape);
    while (std::getline(std::cin, line))
        run_line(&p, line);
    end_layer(&p);
    if (p.be->sync(p.be, &err))
        stop(err.msg);
    size_t taken = p.c->scratch_bytes;
    for (int i = 0; i < 2 * (ATTN_WHOLE + 1); i++)
        taken += p.c->lists[i / 2][i % 2].device_bytes;
    if (taken > planned)
        stop("more memory is taken than was planned", (int)(taken >> 20), (int)(planned >> 20));
    p.be->close(p.be);
    return 0;
}
