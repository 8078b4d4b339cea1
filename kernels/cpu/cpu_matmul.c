/* cpu_matmul.c - matrix products by oneDNN: a table of primitives, how one is made, found and run, and weights.
 *
 * The table of primitives is open addressing over pointers. Readers inside parallel regions take no lock: an entry is
 * complete before its pointer is stored, and entries leave only in matmul_trim, when nobody reads.
 */
#include "kernels/cpu/cpu_matmul.h"

#include "kernels/cpu/onednn.h"
#include "kernels/host.h"

#include <assert.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE = 4096, TABLE_FULL = TABLE / 2 };
enum { ARG_A, ARG_B, ARG_C, ARG_SCRATCH, ARG_BIAS, N_ARGS };

struct packed_weight {
    struct weight base; // first: every weight of this backend is one of these
    struct desc desc;
};

struct primitive {
    struct matmul_shape shape;
    dnnl_primitive_t run;
    size_t scratch_bytes;
    dnnl_memory_t (*arg)[N_ARGS]; // per thread: a memory object is a pointer that the call before it sets
};

struct thread_state {
    dnnl_stream_t stream;
    void *scratch;
    size_t scratch_bytes;
};

struct matmul {
    dnnl_engine_t engine;
    int n_threads;
    struct thread_state *thread;
    struct primitive *_Atomic *table; // [TABLE]
    int n_primitives;
    pthread_mutex_t making;
};

static int failure(struct err *err, const char *what, dnnl_status_t status)
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
        return m;
    failure(err, "start", status);
    matmul_close(m);
    return NULL;
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
        free(m->thread[i].scratch);
    }
    dnnl_engine_destroy(m->engine);
    pthread_mutex_destroy(&m->making);
    free(m->table);
    free(m->thread);
    free(m);
}

void matmul_trim(struct matmul *m)
{
    if (m->n_primitives >= TABLE_FULL)
        forget(m);
}

/* ---- making a primitive ------------------------------------------------- */

/* Needed while a primitive is made, not when it runs. */
struct making {
    struct desc desc[N_ARGS];
    dnnl_post_ops_t post;
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t pd;
};

static dnnl_status_t describe(struct making *k, const struct matmul_shape *s, const struct packed_weight *weight,
                              dnnl_engine_t engine)
{
    dnnl_status_t status = desc_strided(&k->desc[ARG_A], s->m, s->k, s->lda, 1);
    if (status == dnnl_success)
        status = desc_strided(&k->desc[ARG_C], s->m, s->n, s->ldc, 1);
    if (status == dnnl_success && s->right == RIGHT_ROWS)
        status = desc_strided(&k->desc[ARG_B], s->k, s->n, s->ldb, 1);
    if (status == dnnl_success && s->right == RIGHT_TRANSPOSED)
        status = desc_strided(&k->desc[ARG_B], s->k, s->n, 1, s->ldb);
    if (status == dnnl_success && s->bias)
        status = desc_bias(&k->desc[ARG_BIAS], s->n);
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
    const struct desc *right = s->right == RIGHT_PACKED ? &weight->desc : &k->desc[ARG_B];
    return matmul_desc(&k->pd, engine, &k->desc[ARG_A], right, s->bias ? &k->desc[ARG_BIAS] : NULL, &k->desc[ARG_C],
                       k->attr);
}

static void making_release(struct making *k)
{
    for (int a = 0; a < N_ARGS; a++)
        desc_release(&k->desc[a]);
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
        return failure(err, "name its implementation", status);
    if (strncmp(name, "ref", 3) != 0)
        return 0;
    return err_set(err, ERR_DEVICE, "oneDNN has only its slow code ('%s') for a product of %d x %d x %d here", name,
                   s->m, s->n, s->k);
}

static int make_args(struct primitive *p, const struct making *k, const struct packed_weight *weight,
                     const struct matmul *m, struct err *err)
{
    p->arg = calloc((size_t)m->n_threads, sizeof(*p->arg));
    if (!p->arg)
        return err_nomem(err);
    for (int i = 0; i < m->n_threads; i++) {
        for (int a = 0; a < N_ARGS; a++) {
            const struct desc *d = a == ARG_B && p->shape.right == RIGHT_PACKED ? &weight->desc : &k->desc[a];
            if (a == ARG_BIAS && !p->shape.bias)
                continue;
            dnnl_status_t status = dnnl_memory_create(&p->arg[i][a], DESC(d), m->engine, DNNL_MEMORY_NONE);
            if (status != dnnl_success)
                return failure(err, "describe memory", status);
        }
    }
    return 0;
}

/* The thread count is part of a primitive's blocking, so it is set while the primitive is made. */
static int make(struct primitive *p, struct matmul *m, const struct packed_weight *weight, struct err *err)
{
    struct making k = { 0 };
    int before = omp_get_max_threads();

    omp_set_num_threads(p->shape.right == RIGHT_PACKED ? m->n_threads : 1);
    dnnl_status_t status = describe(&k, &p->shape, weight, m->engine);
    int code = status == dnnl_success ? check_fast(k.pd, &p->shape, err) : failure(err, "describe a product", status);
    if (!code) {
        status = dnnl_primitive_create(&p->run, k.pd);
        if (status == dnnl_success)
            status = desc_query(&k.desc[ARG_SCRATCH], k.pd, dnnl_query_scratchpad_md);
        if (status != dnnl_success)
            code = failure(err, "make a product", status);
    }
    omp_set_num_threads(before);
    if (!code) {
        p->scratch_bytes = dnnl_memory_desc_get_size(DESC(&k.desc[ARG_SCRATCH]));
        code = make_args(p, &k, weight, m, err);
    }
    making_release(&k);
    return code;
}

/* ---- finding and running ------------------------------------------------ */

static unsigned shape_hash(const struct matmul_shape *s)
{
    const int part[] = { s->m, s->n, s->k, s->lda, s->ldb, s->ldc, (int)s->right, (int)s->into, (int)s->bias };
    uint64_t h = 0;
    for (size_t i = 0; i < sizeof(part) / sizeof(*part); i++)
        h = (h ^ (uint64_t)part[i]) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
    return (unsigned)(h % TABLE);
}

static bool same_shape(const struct matmul_shape *a, const struct matmul_shape *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->lda == b->lda && a->ldb == b->ldb && a->ldc == b->ldc &&
           a->right == b->right && a->into == b->into && a->bias == b->bias;
}

/* The entry of a shape, or the empty place where it belongs. There is always an empty place: add() refuses to fill the
 * last one. */
static struct primitive *_Atomic *place_of(struct matmul *m, const struct matmul_shape *shape)
{
    unsigned at = shape_hash(shape);
    for (;; at = (at + 1) % TABLE) {
        struct primitive *p = m->table[at];
        if (!p || same_shape(&p->shape, shape))
            return &m->table[at];
    }
}

static struct primitive *add(struct matmul *m, const struct matmul_shape *shape, const struct packed_weight *weight,
                             struct err *err)
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
        if (!p || make(p, m, weight, err)) {
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

static int grow_scratch(struct thread_state *t, size_t bytes, struct err *err)
{
    if (bytes <= t->scratch_bytes)
        return 0;
    free(t->scratch);
    t->scratch_bytes = 0;
    t->scratch = host_alloc(bytes);
    if (!t->scratch)
        return err_nomem(err);
    t->scratch_bytes = bytes;
    return 0;
}

static void *writable(const void *at) // oneDNN takes sources without const
{
    union {
        const void *in;
        void *out;
    } u = { at };
    return u.out;
}

int matmul_run(struct matmul *m, const struct matmul_shape *shape, float *c, const float *a, const float *right,
               const struct weight *weight, const float *bias, int thread, struct err *err)
{
    static const int name[N_ARGS] = { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD,
                                      DNNL_ARG_BIAS };
    struct primitive *p = *place_of(m, shape);
    if (!p)
        p = add(m, shape, (const struct packed_weight *)weight, err);
    if (!p)
        return err->code;
    struct thread_state *t = &m->thread[thread];
    if (grow_scratch(t, p->scratch_bytes, err))
        return err->code;

    const void *at[N_ARGS] = { a, weight ? weight->at : right, c, t->scratch, bias };
    dnnl_exec_arg_t arg[N_ARGS];
    int n_args = shape->bias ? N_ARGS : N_ARGS - 1;
    for (int i = 0; i < n_args; i++) {
        dnnl_status_t set = dnnl_memory_set_data_handle(p->arg[thread][i], writable(at[i]));
        if (set != dnnl_success)
            return failure(err, "place an operand", set);
        arg[i] = (dnnl_exec_arg_t){ name[i], p->arg[thread][i] };
    }
    dnnl_status_t status = dnnl_primitive_execute(p->run, t->stream, n_args, arg);
    return status == dnnl_success ? 0 : failure(err, "multiply", status);
}

/* ---- weights ------------------------------------------------------------ */

/* The layout oneDNN prefers for (in, out) weights. It is the same for every number of rows; 512 are asked about. */
static dnnl_status_t preferred(struct packed_weight *w, dnnl_engine_t engine)
{
    int out = w->base.out, in = w->base.in;
    enum { ROWS_TYPICAL = 512 };
    struct making k = { 0 };

    dnnl_status_t status = desc_strided(&k.desc[ARG_A], ROWS_TYPICAL, in, in, 1);
    if (status == dnnl_success)
        status = desc_any(&k.desc[ARG_B], in, out);
    if (status == dnnl_success)
        status = desc_strided(&k.desc[ARG_C], ROWS_TYPICAL, out, out, 1);
    if (status == dnnl_success)
        status = matmul_desc(&k.pd, engine, &k.desc[ARG_A], &k.desc[ARG_B], NULL, &k.desc[ARG_C], NULL);
    if (status == dnnl_success)
        status = desc_query(&w->desc, k.pd, dnnl_query_weights_md);
    making_release(&k);
    return status;
}

/* Copies rows (out, in) into the weight's layout. */
static dnnl_status_t reorder(struct matmul *m, struct packed_weight *w, const float *rows)
{
    struct desc stored = { 0 };
    dnnl_memory_t from = NULL, to = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_t run = NULL;

    dnnl_status_t status = desc_strided(&stored, w->base.in, w->base.out, 1, w->base.in);
    if (status == dnnl_success)
        status = dnnl_memory_create(&from, DESC(&stored), m->engine, writable(rows));
    if (status == dnnl_success)
        status = dnnl_memory_create(&to, DESC(&w->desc), m->engine, w->base.at);
    if (status == dnnl_success)
        status = dnnl_reorder_primitive_desc_create(&pd, DESC(&stored), m->engine, DESC(&w->desc), m->engine, NULL);
    if (status == dnnl_success)
        status = dnnl_primitive_create(&run, pd);
    if (status == dnnl_success) {
        const dnnl_exec_arg_t arg[] = { { DNNL_ARG_FROM, from }, { DNNL_ARG_TO, to } };
        status = dnnl_primitive_execute(run, m->thread[0].stream, 2, arg);
    }
    if (status == dnnl_success)
        status = dnnl_stream_wait(m->thread[0].stream);
    dnnl_primitive_destroy(run);
    dnnl_primitive_desc_destroy(pd);
    dnnl_memory_destroy(to);
    dnnl_memory_destroy(from);
    desc_release(&stored);
    return status;
}

/* The parts one below the other without gaps: (out, in), allocated. */
static float *stack(const struct mat *host, int n_parts, size_t n_floats)
{
    float *all = host_alloc(n_floats * sizeof(float));
    float *to = all;
    for (int p = 0; p < n_parts && all; p++)
        for (int i = 0; i < host[p].rows; i++, to += host[p].cols)
            memcpy(to, (const float *)host[p].at + (size_t)i * (size_t)host[p].pitch,
                   (size_t)host[p].cols * sizeof(float));
    return all;
}

struct weight *matmul_pack(struct matmul *m, const struct mat *host, int n_parts, struct err *err)
{
    struct packed_weight *w = calloc(1, sizeof(*w));
    if (!w) {
        err_nomem(err);
        return NULL;
    }
    w->base.in = host[0].cols;
    for (int p = 0; p < n_parts; p++)
        w->base.out += host[p].rows;
    float *rows = stack(host, n_parts, (size_t)w->base.out * (size_t)w->base.in);
    dnnl_status_t status = rows ? preferred(w, m->engine) : dnnl_out_of_memory;
    if (status == dnnl_success) {
        w->base.at = host_alloc(dnnl_memory_desc_get_size(DESC(&w->desc)));
        status = w->base.at ? reorder(m, w, rows) : dnnl_out_of_memory;
    }
    free(rows);
    if (status == dnnl_success)
        return &w->base;
    failure(err, "pack a weight", status);
    matmul_weight_free(&w->base);
    return NULL;
}

void matmul_weight_free(struct weight *weight)
{
    struct packed_weight *w = (struct packed_weight *)weight;

    if (!w)
        return;
    desc_release(&w->desc);
    free(w->base.at);
    free(w);
}
