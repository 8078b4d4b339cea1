/* cpu_matmul.c - a hash table of oneDNN primitives: makes, finds and executes them.
 *
 * The table uses open addressing over pointers. Readers inside parallel regions take no lock: an entry is complete
 * before its pointer is stored, and only matmul_trim removes entries, when nothing reads.
 */
#include "kernels/cpu/cpu_matmul_internal.h"

#include "kernels/host.h"

#include <assert.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    TABLE = MATMUL_TABLE,
    FULL = 512, // with this many primitives the table is emptied before the next op; one op may add hundreds
    /* Where a row's bits depend on the other rows (oneDNN's code for AVX2 and less) every product has this many rows.
     * It is a multiple of 6: then the rows of a block are summed alike, whatever their position. With six weights 24
     * rows reach 90 to 98 % of the speed of 512 rows at once, 48 rows 96 to 100 %. */
    ROW_BLOCK = 48,
    PANEL = 64,   // columns of a task there: 94 to 98 % of the speed of all columns at once, and work for more threads
    ROW_STEP = 8, // of products by an unpacked right side: few numbers of rows, so few primitives
    /* For one row, or a result of at most this size, oneDNN does not use AMX, and the bits change. */
    SMALL_ROWS = 32,
    SMALL_NUMBERS = 256,
};
enum { ARG_A, ARG_B, ARG_C, ARG_SCRATCH, ARG_BIAS, N_ARGS };

struct primitive {
    struct matmul_shape shape;
    dnnl_primitive_t run;
    size_t scratch_bytes;
    dnnl_memory_t (*arg)[N_ARGS]; // per thread, made at first use; each call sets the pointers of these objects
};

int matmul_failure(struct err *err, const char *what, dnnl_status_t status)
{
    return err_set(err, status == dnnl_out_of_memory ? ERR_NOMEM : ERR_FAIL, "oneDNN: cannot %s: status %d", what,
                   (int)status);
}

struct matmul *matmul_open(int n_threads, struct err *err)
{
    struct matmul *m = calloc(1, sizeof(*m));
    if (!m) {
        err_nomem(err);
        return NULL;
    }
    pthread_mutex_init(&m->making, NULL);
    m->n_threads = n_threads;
    m->thread = calloc((size_t)n_threads, sizeof(*m->thread));
    m->table = calloc(TABLE, sizeof(*m->table));
    dnnl_status_t status = m->thread && m->table ? dnnl_engine_create(&m->engine, dnnl_cpu, 0) : dnnl_out_of_memory;
    for (int i = 0; i < n_threads && status == dnnl_success; i++)
        status = dnnl_stream_create(&m->thread[i].stream, m->engine, dnnl_stream_default_flags);
    if (status == dnnl_success)
        status = dnnl_set_primitive_cache_capacity(0); // the table is one
    if (status != dnnl_success) {
        matmul_failure(err, "start", status);
        matmul_close(m);
        return NULL;
    }
    enum { TYPICAL = 512 };
    const char *code = matmul_code(m, TYPICAL, TYPICAL, DTYPE_F32);
    m->row_block = code && strncmp(code, "brg", 3) == 0 ? 0 : ROW_BLOCK;
    code = matmul_code(m, TYPICAL, TYPICAL, DTYPE_BF16);
    m->has_amx = code && strstr(code, "amx");
    return m;
}

static void primitive_free(struct primitive *p, int n_threads)
{
    if (!p)
        return;
    for (int i = 0; i < n_threads && p->arg; i++)
        for (int a = 0; a < N_ARGS; a++)
            dnnl_memory_destroy(p->arg[i][a]);
    free(p->arg);
    dnnl_primitive_destroy(p->run);
    free(p);
}

static void forget(struct matmul *m)
{
    for (int i = 0; i < TABLE; i++) {
        primitive_free(m->table[i], m->n_threads);
        m->table[i] = NULL;
    }
    m->n_primitives = 0;
}

void matmul_close(struct matmul *m)
{
    if (!m)
        return;
    if (m->table)
        forget(m);
    for (int i = 0; i < m->n_threads && m->thread; i++) {
        dnnl_stream_destroy(m->thread[i].stream);
        free(m->thread[i].scratch.at);
    }
    dnnl_engine_destroy(m->engine);
    pthread_mutex_destroy(&m->making);
    free(m->padded.at);
    free(m->table);
    free(m->thread);
    free(m);
}

void matmul_trim(struct matmul *m)
{
    if (m->n_primitives >= FULL)
        forget(m);
}

/* The fewest rows of a product with n columns; fewer are padded. */
static int min_rows(const struct matmul *m, int n, enum dtype in)
{
    if (m->row_block)
        return m->row_block;
    if (!m->has_amx || in != DTYPE_BF16)
        return ONEDNN_ALIKE_ROWS;
    int min = SMALL_NUMBERS / n + 1;
    return min > SMALL_ROWS ? SMALL_ROWS + 1 : min > 1 ? min : 2;
}

int matmul_rows(const struct matmul *m, int rows, int n, enum dtype in)
{
    int min = min_rows(m, n, in), step = m->row_block ? m->row_block : ROW_STEP;

    if (!m->row_block && in == DTYPE_F32 && rows < ROW_STEP)
        return rows;
    rows = rows > min ? rows : min;
    return (rows + step - 1) / step * step;
}

/* ---- making a primitive ------------------------------------------------- */

/* Needed only while a primitive is made. */
struct making {
    struct desc a, b, c, bias;
    struct packed_weight weight;
    dnnl_post_ops_t post;
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t pd;
};

static dnnl_status_t describe_operands(struct making *k, const struct matmul_shape *s, const struct matmul *m)
{
    dnnl_data_type_t in = matmul_type(s->in);

    dnnl_status_t status = desc_strided(&k->a, in, (int64_t[]){ s->m, s->k }, (int64_t[]){ s->k, 1 });
    if (status == dnnl_success)
        status = desc_strided(&k->c, matmul_type(s->out), (int64_t[]){ s->m, s->n },
                              (int64_t[]){ s->right == RIGHT_PANEL ? s->whole : s->n, 1 });
    if (status == dnnl_success && s->right == RIGHT_ROWS)
        status = desc_strided(&k->b, in, (int64_t[]){ s->k, s->n }, (int64_t[]){ s->n, 1 });
    if (status == dnnl_success && s->right == RIGHT_TRANSPOSED)
        status = desc_strided(&k->b, in, (int64_t[]){ s->k, s->n }, (int64_t[]){ 1, s->k });
    if (status == dnnl_success && s->right == RIGHT_PANEL)
        status = desc_strided(&k->b, in, (int64_t[]){ s->k, s->n }, (int64_t[]){ weight_pitch(s->whole), 1 });
    if (status == dnnl_success && s->right == RIGHT_PACKED) {
        k->weight = (struct packed_weight){ .base = { .out = s->n, .in = s->k }, .type = s->in };
        status = weight_layout(m, &k->weight);
    }
    if (status == dnnl_success && s->bias)
        status = desc_bias(&k->bias, s->n);
    return status;
}

static dnnl_status_t describe(struct making *k, const struct matmul_shape *s, const struct matmul *m)
{
    dnnl_status_t status = describe_operands(k, s, m);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_create(&k->attr);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(k->attr, dnnl_scratchpad_mode_user);
    if (status == dnnl_success && s->into == GEMM_ADD) {
        status = dnnl_post_ops_create(&k->post);
        if (status == dnnl_success)
            status = post_ops_add_sum(k->post);
        if (status == dnnl_success)
            status = dnnl_primitive_attr_set_post_ops(k->attr, k->post);
    }
    if (status != dnnl_success)
        return status;
    return matmul_desc(&k->pd, m->engine, &k->a, s->right == RIGHT_PACKED ? &k->weight.desc : &k->b,
                       s->bias ? &k->bias : NULL, &k->c, k->attr);
}

static void making_release(struct making *k)
{
    desc_release(&k->a);
    desc_release(&k->b);
    desc_release(&k->c);
    desc_release(&k->bias);
    desc_release(&k->weight.desc);
    if (k->pd)
        dnnl_primitive_desc_destroy(k->pd);
    if (k->attr)
        dnnl_primitive_attr_destroy(k->attr);
    if (k->post)
        dnnl_post_ops_destroy(k->post);
}

static int check_fast(dnnl_primitive_desc_t pd, const struct matmul_shape *s, struct err *err)
{
    const char *name = "";
    dnnl_status_t status = dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    if (status != dnnl_success)
        return matmul_failure(err, "name its implementation", status);
    if (strncmp(name, "ref", 3) != 0)
        return 0;
    return err_set(err, ERR_DEVICE, "oneDNN has only its slow code ('%s') for a product of %d x %d x %d here", name,
                   s->m, s->n, s->k);
}

static dnnl_status_t scratch_of(const_dnnl_primitive_desc_t pd, size_t *bytes)
{
    struct desc d = { 0 };
    dnnl_status_t status = desc_query(&d, pd, dnnl_query_scratchpad_md, 0);
    *bytes = status == dnnl_success ? dnnl_memory_desc_get_size(DESC(&d)) : 0;
    desc_release(&d);
    return status;
}

/* A primitive's blocking depends on the thread count, so that is set while the primitive is made. */
static int make(struct primitive *p, const struct matmul *m, struct err *err)
{
    struct making k = { 0 };
    int before = omp_get_max_threads();

    omp_set_num_threads(p->shape.right == RIGHT_PACKED ? m->n_threads : 1);
    dnnl_status_t status = describe(&k, &p->shape, m);
    int code =
        status == dnnl_success ? check_fast(k.pd, &p->shape, err) : matmul_failure(err, "describe a product", status);
    if (!code) {
        status = dnnl_primitive_create(&p->run, k.pd);
        if (status == dnnl_success)
            status = scratch_of(k.pd, &p->scratch_bytes);
        p->arg = calloc((size_t)m->n_threads, sizeof(*p->arg));
        if (status == dnnl_success && !p->arg)
            status = dnnl_out_of_memory;
        if (status != dnnl_success)
            code = matmul_failure(err, "make a product", status);
    }
    omp_set_num_threads(before);
    making_release(&k);
    return code;
}

/* ---- finding and running ------------------------------------------------ */

static unsigned shape_hash(const struct matmul_shape *s)
{
    const int part[] = {
        s->m, s->n, s->k, (int)s->in, (int)s->out, s->whole, (int)s->right, (int)s->into, (int)s->bias
    };
    uint64_t h = 0;
    for (size_t i = 0; i < sizeof(part) / sizeof(*part); i++)
        h = (h ^ (uint64_t)part[i]) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
    return (unsigned)(h % TABLE);
}

static bool same_shape(const struct matmul_shape *a, const struct matmul_shape *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->whole == b->whole && a->in == b->in && a->out == b->out &&
           a->right == b->right && a->into == b->into && a->bias == b->bias;
}

/* The entry of a shape, or the empty slot for it. An empty slot always exists: add() never fills the last one. */
static struct primitive *_Atomic *place_of(const struct matmul *m, const struct matmul_shape *shape)
{
    unsigned at = shape_hash(shape);
    for (;; at = (at + 1) % TABLE) {
        struct primitive *p = m->table[at];
        if (!p || same_shape(&p->shape, shape))
            return &m->table[at];
    }
}

static struct primitive *add(struct matmul *m, const struct matmul_shape *shape, struct err *err)
{
    pthread_mutex_lock(&m->making);
    struct primitive *_Atomic *place = place_of(m, shape);
    struct primitive *p = *place;
    if (!p && m->n_primitives >= TABLE - 1) {
        err_set(err, ERR_FAIL, "more than %d shapes of matrix products in one operation", TABLE);
    } else if (!p) {
        p = calloc(1, sizeof(*p));
        if (p)
            p->shape = *shape;
        if (!p || make(p, m, err)) {
            if (!p)
                err_nomem(err);
            primitive_free(p, m->n_threads);
            p = NULL;
        } else {
            *place = p;
            m->n_primitives++;
        }
    }
    pthread_mutex_unlock(&m->making);
    return p;
}

static int grow(struct matmul_memory *s, size_t bytes, struct err *err)
{
    if (bytes <= s->bytes)
        return 0;
    free(s->at);
    s->bytes = 0;
    s->at = host_alloc(bytes);
    if (!s->at)
        return err_nomem(err);
    s->bytes = bytes;
    return 0;
}

static int make_args(const struct primitive *p, const struct matmul *m, int thread, struct err *err)
{
    static const struct {
        dnnl_query_t what;
        int index;
    } query[N_ARGS] = { { dnnl_query_src_md, 0 },
                        { dnnl_query_weights_md, 0 },
                        { dnnl_query_dst_md, 0 },
                        { dnnl_query_scratchpad_md, 0 },
                        { dnnl_query_weights_md, 1 } };
    const_dnnl_primitive_desc_t pd;

    dnnl_status_t status = dnnl_primitive_get_primitive_desc(p->run, &pd);
    for (int a = 0; a < (p->shape.bias ? N_ARGS : N_ARGS - 1) && status == dnnl_success; a++) {
        struct desc d = { 0 };
        status = desc_query(&d, pd, query[a].what, query[a].index);
        if (status == dnnl_success)
            status = dnnl_memory_create(&p->arg[thread][a], DESC(&d), m->engine, DNNL_MEMORY_NONE);
        desc_release(&d);
    }
    return status == dnnl_success ? 0 : matmul_failure(err, "describe memory", status);
}

static int run(struct matmul *m, const struct matmul_shape *shape, const struct operands *o, int thread,
               struct err *err)
{
    static const int name[N_ARGS] = { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD,
                                      DNNL_ARG_BIAS };
    struct primitive *p = *place_of(m, shape);
    if (!p)
        p = add(m, shape, err);
    if (!p)
        return err->code;
    struct thread_state *t = &m->thread[thread];
    int last = shape->bias ? ARG_BIAS : ARG_SCRATCH;
    if (grow(&t->scratch, p->scratch_bytes, err) || (!p->arg[thread][last] && make_args(p, m, thread, err)))
        return err->code;

    const void *at[N_ARGS] = { o->a, o->weight ? o->weight->at : o->right, o->c, t->scratch.at, o->bias };
    dnnl_exec_arg_t arg[N_ARGS];
    for (int i = 0; i <= last; i++) {
        dnnl_status_t set = dnnl_memory_set_data_handle(p->arg[thread][i], matmul_writable(at[i]));
        if (set != dnnl_success)
            return matmul_failure(err, "set an operand", set);
        arg[i] = (dnnl_exec_arg_t){ name[i], p->arg[thread][i] };
    }
    /* Products of attention run on the calling thread, also outside parallel regions. */
    int before = omp_get_max_threads();
    if (shape->right != RIGHT_PACKED && before > 1)
        omp_set_num_threads(1);
    dnnl_status_t status = dnnl_primitive_execute(p->run, t->stream, last + 1, arg);
    if (shape->right != RIGHT_PACKED && before > 1)
        omp_set_num_threads(before);
    return status == dnnl_success ? 0 : matmul_failure(err, "multiply", status);
}

/* ---- where a row's bits depend on the others ---------------------------- */

/* A product by an unpacked right side: block by block on the calling thread. */
static int run_blocks(struct matmul *m, const struct matmul_shape *shape, const struct operands *o, int thread,
                      struct err *err)
{
    struct matmul_shape block = *shape;
    struct operands at = *o;
    int code = 0;

    assert(shape->m % m->row_block == 0);
    block.m = m->row_block;
    for (int row = 0; row < shape->m && !code; row += m->row_block) {
        at.a = (const char *)o->a + (size_t)row * (size_t)shape->k * dtype_size(shape->in);
        at.c = (char *)o->c + (size_t)row * (size_t)shape->n * dtype_size(shape->out);
        code = run(m, &block, &at, thread, err);
    }
    return code;
}

/* A block of rows by the panel of columns that begins at `col`. */
static struct matmul_shape panel_shape(const struct matmul *m, const struct matmul_shape *shape, int col)
{
    struct matmul_shape panel = *shape;

    panel.m = m->row_block;
    panel.n = shape->n - col < PANEL ? shape->n - col : PANEL;
    panel.right = RIGHT_PANEL;
    panel.whole = shape->n;
    return panel;
}

/* One task of a product by a packed weight, on the calling thread. */
static int run_panel(struct matmul *m, const struct matmul_shape *shape, const struct operands *o, int row, int col,
                     struct err *err)
{
    const struct matmul_shape panel = panel_shape(m, shape, col);
    const struct operands at = {
        .c = (char *)o->c + ((size_t)row * (size_t)shape->n + (size_t)col) * dtype_size(shape->out),
        .a = (const char *)o->a + (size_t)row * (size_t)shape->k * dtype_size(shape->in),
        .right = (const char *)o->weight->at + (size_t)col * dtype_size(shape->in),
        .bias = o->bias ? o->bias + col : NULL,
    };
    return run(m, &panel, &at, omp_get_thread_num(), err);
}

/* A product of whole blocks by a packed weight, on all threads. oneDNN itself would share a block's rows among threads,
 * and a row's bits would depend on its position. */
static int run_panels(struct matmul *m, const struct matmul_shape *shape, const struct operands *o, struct err *err)
{
    int code = 0, threads = shape->m > m->row_block || shape->n > PANEL ? m->n_threads : 1;

    assert(shape->m % m->row_block == 0);
#pragma omp parallel for collapse(2) schedule(dynamic) num_threads(threads)
    for (int col = 0; col < shape->n; col += PANEL)
        for (int row = 0; row < shape->m; row += m->row_block) {
            struct err own;
            if (run_panel(m, shape, o, row, col, &own)) {
#pragma omp critical(matmul_failure)
                *err = own, code = own.code;
            }
        }
    return code;
}

/* Bytes of the padded last rows of a product by a packed weight. */
static size_t padded_bytes(const struct matmul *m, const struct matmul_shape *shape)
{
    if (matmul_is_ours(m, shape->k, shape->in))
        return (size_t)PRODUCT_ROWS * (size_t)shape->k * dtype_size(shape->in);
    size_t row = (size_t)shape->k * dtype_size(shape->in) + (size_t)shape->n * dtype_size(shape->out);
    return (size_t)min_rows(m, shape->n, shape->in) * row;
}

static int run_padded(struct matmul *m, const struct matmul_shape *shape, const struct operands *o, struct err *err)
{
    struct matmul_shape block = *shape;
    struct operands at = *o;
    size_t a_row = (size_t)shape->k * dtype_size(shape->in), c_row = (size_t)shape->n * dtype_size(shape->out);
    size_t given = (size_t)shape->m, rows = (size_t)min_rows(m, shape->n, shape->in);

    if (grow(&m->padded, padded_bytes(m, shape), err))
        return err->code;
    char *a = m->padded.at, *c = a + rows * a_row;
    memcpy(a, o->a, given * a_row);
    memset(a + given * a_row, 0, (rows - given) * a_row);
    if (shape->into == GEMM_ADD) {
        memcpy(c, o->c, given * c_row);
        memset(c + given * c_row, 0, (rows - given) * c_row);
    }
    block.m = (int)rows, at.a = a, at.c = c;
    int code = m->row_block ? run_panels(m, &block, &at, err) : run(m, &block, &at, 0, err);
    if (!code)
        memcpy(o->c, c, given * c_row);
    return code;
}

/* Whole blocks first, then the rest, padded. */
static int run_packed(struct matmul *m, const struct matmul_shape *shape, const struct operands *o, struct err *err)
{
    struct matmul_shape whole = *shape, rest = *shape;
    struct operands at = *o;

    rest.m = shape->m % m->row_block;
    whole.m = shape->m - rest.m;
    at.a = (const char *)o->a + (size_t)whole.m * (size_t)shape->k * dtype_size(shape->in);
    at.c = (char *)o->c + (size_t)whole.m * (size_t)shape->n * dtype_size(shape->out);
    int code = whole.m ? run_panels(m, &whole, o, err) : 0;
    return code || !rest.m ? code : run_padded(m, &rest, &at, err);
}

/* ---- our own products --------------------------------------------------- */

static int run_ours(struct matmul *m, const struct matmul_shape *s, const struct operands *o, struct err *err)
{
    struct product p = { .c = o->c, .a = o->a, .w = o->weight->at, .bias = o->bias, .m = s->m, .n = s->n, .k = s->k };
    size_t given = (size_t)s->m * (size_t)s->k * dtype_size(s->in), all = padded_bytes(m, s);

    p.out = s->out, p.into = s->into;
    if (given < all) {
        if (grow(&m->padded, all, err))
            return err->code;
        memcpy(m->padded.at, o->a, given);
        memset((char *)m->padded.at + given, 0, all - given);
        p.a = m->padded.at;
    }
    product_amx(&p, m->n_threads);
    return 0;
}

int matmul_run(struct matmul *m, const struct matmul_shape *shape, const struct operands *o, int thread,
               struct err *err)
{
    if (shape->right != RIGHT_PACKED)
        return m->row_block ? run_blocks(m, shape, o, thread, err) : run(m, shape, o, thread, err);
    if (matmul_is_ours(m, shape->k, shape->in))
        return run_ours(m, shape, o, err);
    if (m->row_block)
        return run_packed(m, shape, o, err);
    return shape->m < min_rows(m, shape->n, shape->in) ? run_padded(m, shape, o, err) : run(m, shape, o, thread, err);
}

/* Bytes of the primitives of a full table. Most of it is machine code; measured: 107 and 60 KB per primitive. */
static size_t primitive_bytes(const struct matmul *m)
{
    enum {
        PACKED_BYTES = 112 << 10,
        PLAIN_BYTES = 64 << 10,
        THREAD_BYTES = 2 << 10, // of a thread's memory objects for one primitive
        /* Possible row counts x key counts of a piece x two products; see matmul_rows() and cpu_attend. */
        PLAIN_SHAPES = 31 * 16 * 2,
    };
    size_t code = (size_t)FULL * PACKED_BYTES + (size_t)PLAIN_SHAPES * PLAIN_BYTES;
    size_t objects = (size_t)(FULL + PLAIN_SHAPES) * THREAD_BYTES * (size_t)m->n_threads;
    return objects + (m->row_block ? 0 : code); // with row_block the same code serves any shape
}

size_t matmul_scratch(struct matmul *m, const struct matmul_shape *shape, int n_shapes)
{
    enum { GEMM_BYTES = 4 << 20 }; // per thread: code without a scratchpad allocates it itself
    size_t max = m->row_block ? GEMM_BYTES : 0, padded = 0;

    for (int i = 0; i < n_shapes; i++) {
        struct making k = { 0 };
        size_t bytes = 0;
        bool panel = m->row_block && shape[i].right == RIGHT_PACKED;
        const struct matmul_shape made = panel ? panel_shape(m, &shape[i], 0) : shape[i];
        bool ours = shape[i].right == RIGHT_PACKED && matmul_is_ours(m, shape[i].k, shape[i].in);
        if (!ours && describe(&k, &made, m) == dnnl_success && scratch_of(k.pd, &bytes) == dnnl_success && bytes > max)
            max = bytes;
        making_release(&k);
        if (shape[i].right == RIGHT_PACKED && padded_bytes(m, &shape[i]) > padded)
            padded = padded_bytes(m, &shape[i]);
    }
    return max * (size_t)m->n_threads + padded + primitive_bytes(m);
}
