/* branch.c - the tree. The waiting node with the highest bound is next. From it the search goes down, always to the
 * side with the higher bound, until a node is done; the other sides wait. */
#include "planner/branch.h"

#include "base/array.h"
#include "planner/moves.h"
#include "planner/subproblem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS_PER_WORK = 200, TRIALS = 8, ENOUGH = 2, WAITING_MAX = 1 << 15 };

/* The highest price, as a multiple of any price that could be right at the root. Only a very high price shows that the
 * remaining contexts do not fit. */
static const double price_reach = 16;

static const struct subproblem_side whole = { .context = SIDE_OF_NONE };

/* A waiting node, in one block of memory. */
struct node {
    double bound, price[PLAN_TIERS];
    int number; // in order of creation
    int n_open;
    int n_cuts;
    double (*cut_price)[PLAN_TIERS]; // (n_cuts) prices of the cuts in the bound's mix
    int *packed; // (C) candidates of decided contexts; then for each open one its context, n, n candidates
};

/* The effect of dividing a context so far: fall of the bounds of both sides, per unit of a division's score. */
struct experience {
    double fall[2];
    int n;
};

struct tree {
    struct incumbent *x;
    int n_contexts, n_knapsacks, n_nodes;
    struct moves candidates; // candidates of a possible better plan; an option's `candidate` is an index here
    struct {
        struct node **at;
        int n, cap;
    } waiting;                         // a heap
    struct subproblem at, next;        // the current node; one of its sides
    struct bound bound, bounds[4];     // of `at`; memory for the next two
    struct bound *taken[2], *trial[2]; // sides of the best division so far; sides of a trial
    struct experience *experience;     // (C)
    int *best;                         // (C) the candidates of the best plan, if found
    double rounding;                   // of an objective
    bool found, failed;                // found: a better plan; failed: no memory
    struct search_state state;
};

/* ---- plans ---------------------------------------------------------------------------- */

static void keep_plan(void *arg, const struct subproblem *s, const struct cut *plan)
{
    struct tree *t = arg;

    t->found = true;
    t->state.target = plan->utility + t->rounding;
    memcpy(t->best, s->decided, (size_t)t->n_contexts * sizeof(*t->best));
    for (int i = 0; i < s->n; i++)
        t->best[s->context[i]] = s->option[plan->choice[i]].candidate;
}

static struct option option_of(const struct tree *t, int candidate)
{
    const struct candidate *c = &t->candidates.at[candidate].to;

    return (struct option){ (double)c->bytes, c->utility, c->knapsack, candidate };
}

/* ---- waiting nodes --------------------------------------------------------------------- */

/* NULL without memory. */
static struct node *pack(struct tree *t, const struct subproblem *s, const struct bound *b)
{
    size_t n_ints = (size_t)t->n_contexts + 2 * (size_t)s->n + (size_t)s->first[s->n];
    size_t prices = (size_t)b->n_cuts * sizeof(double[PLAN_TIERS]);
    struct node *node = malloc(sizeof(*node) + prices + n_ints * sizeof(int));

    if (!node)
        return NULL;
    *node = (struct node){ .bound = b->value, .number = t->n_nodes++, .n_open = s->n, .n_cuts = b->n_cuts };
    node->cut_price = (double(*)[PLAN_TIERS])(node + 1);
    node->packed = (int *)(node->cut_price + b->n_cuts);
    memcpy(node->price, b->price, sizeof(node->price));
    for (int k = 0; k < b->n_cuts; k++)
        memcpy(node->cut_price[k], b->cut[k].price, sizeof(node->cut_price[k]));
    memcpy(node->packed, s->decided, (size_t)t->n_contexts * sizeof(int));
    int *to = node->packed + t->n_contexts;
    for (int i = 0; i < s->n; i++) {
        node->packed[s->context[i]] = -1;
        *to++ = s->context[i];
        *to++ = s->first[i + 1] - s->first[i];
        for (int k = s->first[i]; k < s->first[i + 1]; k++)
            *to++ = s->option[k].candidate;
    }
    return node;
}

/* Makes a node the current one and frees it. */
static void unpack(struct tree *t, struct node *node)
{
    struct subproblem *s = &t->at;
    const int *from = node->packed + t->n_contexts;

    s->n = node->n_open;
    s->utility = 0;
    memcpy(s->decided, node->packed, (size_t)t->n_contexts * sizeof(int));
    for (int d = 0; d < t->n_knapsacks; d++)
        s->left[d] = (double)t->x->h->knapsack.capacity[d];
    for (int i = 0; i < t->n_contexts; i++) {
        if (s->decided[i] < 0)
            continue;
        struct option o = option_of(t, s->decided[i]);
        s->utility += o.utility;
        if (o.knapsack >= 0)
            s->left[o.knapsack] -= o.bytes;
    }
    s->first[0] = 0;
    for (int i = 0; i < s->n; i++) {
        s->context[i] = *from++;
        s->first[i + 1] = s->first[i] + *from++;
        for (int k = s->first[i]; k < s->first[i + 1]; k++)
            s->option[k] = option_of(t, *from++);
    }
    t->bound.value = node->bound;
    t->bound.n_cuts = node->n_cuts;
    memcpy(t->bound.price, node->price, sizeof(node->price));
    for (int k = 0; k < node->n_cuts; k++)
        memcpy(t->bound.cut[k].price, node->cut_price[k], sizeof(node->cut_price[k]));
    free(node);
}

/* Highest bound first; of equal bounds the newest node. */
static bool is_before(const struct node *a, const struct node *b)
{
    return a->bound > b->bound || (a->bound >= b->bound && a->number > b->number);
}

static void push(struct tree *t, struct node *node)
{
    if (ARRAY_GROW(&t->waiting, t->waiting.n + 1)) {
        t->failed = true;
        free(node);
        return;
    }
    struct node **h = t->waiting.at;
    int i = t->waiting.n++;
    for (; i > 0 && is_before(node, h[(i - 1) / 2]); i = (i - 1) / 2)
        h[i] = h[(i - 1) / 2];
    h[i] = node;
}

static struct node *pop(struct tree *t)
{
    struct node **h = t->waiting.at, *first = h[0], *last = h[--t->waiting.n];
    int i = 0, n = t->waiting.n;

    for (int child = 1; child < n; child = 2 * i + 1) {
        child += child + 1 < n && is_before(h[child + 1], h[child]);
        if (!is_before(h[child], last))
            break;
        h[i] = h[child];
        i = child;
    }
    h[i] = last;
    return first;
}

/* ---- dividing ---------------------------------------------------------------------------- */

struct division {
    double score;
    struct subproblem_side side;
};

/* A side that has exactly one of two options. If one of them uses no knapsack, the side has all options without one. */
static struct subproblem_side between(int context, const struct option *a, const struct option *b)
{
    if (a->knapsack == b->knapsack)
        return (struct subproblem_side){ context, a->knapsack, (a->bytes + b->bytes) / 2, true };
    if (a->knapsack < 0 || b->knapsack < 0)
        return (struct subproblem_side){ context, -1, 0, true };
    if (b->bytes > a->bytes)
        a = b;
    return (struct subproblem_side){ context, a->knapsack, 0, true };
}

/* The difference between two options at the prices. It is 0 for equal costs in two knapsacks: such a context is not
 * worth dividing. */
static double distance(const struct option *a, const struct option *b, const double *price)
{
    double of_a = a->knapsack < 0 ? 0 : price[a->knapsack] * a->bytes;
    double of_b = b->knapsack < 0 ? 0 : price[b->knapsack] * b->bytes;

    return fabs(of_a - of_b);
}

/* The weight of an option in the mix. */
static double weight_of(const struct bound *b, int context, int option)
{
    double weight = 0;

    for (int k = 0; k < b->n_cuts; k++)
        weight += b->cut[k].choice[context] == option ? b->cut[k].weight : 0;
    return weight;
}

/* The best division between two of a context's options in the mix; score 0: the mix has only one. */
static struct division divide_context(const struct tree *t, int i)
{
    const struct bound *b = &t->bound;
    struct division best = { 0, whole };

    for (int k = 0; k < b->n_cuts; k++) {
        for (int j = 0; j < k; j++) {
            int x = b->cut[k].choice[i], y = b->cut[j].choice[i];
            if (x == y)
                continue;
            double score =
                distance(&t->at.option[x], &t->at.option[y], b->price) * fmin(weight_of(b, i, x), weight_of(b, i, y));
            if (score > best.score)
                best = (struct division){ score, between(i, &t->at.option[x], &t->at.option[y]) };
        }
    }
    return best;
}

/* When the mix is a single plan: divides off the last option of the context with the most options. */
static struct subproblem_side divide_any(const struct tree *t)
{
    const struct subproblem *s = &t->at;
    int i = 0;

    for (int k = 1; k < s->n; k++)
        i = s->first[k + 1] - s->first[k] > s->first[i + 1] - s->first[i] ? k : i;
    const struct option *last = &s->option[s->first[i + 1] - 1];
    return (struct subproblem_side){ i, last->knapsack, last->bytes, true };
}

/* Sets v[] to the (at most TRIALS) divisions with the highest scores. Returns their number. */
static int find_divisions(const struct tree *t, struct division *v)
{
    int n = 0;

    for (int i = 0; i < t->at.n; i++) {
        struct division next = divide_context(t, i);
        if (!(next.score > 0) || (n == TRIALS && next.score <= v[n - 1].score))
            continue;
        n += n < TRIALS;
        int k = n - 1;
        for (; k > 0 && v[k - 1].score < next.score; k--)
            v[k] = v[k - 1];
        v[k] = next;
    }
    if (n == 0)
        v[n++] = (struct division){ 0, divide_any(t) };
    return n;
}

/* Turns a cut of a node into a cut of one side: the divided context takes its best option there. */
static void turn_cut(const struct subproblem *s, const struct subproblem_side *side, struct cut *cut)
{
    int i = side->context, is = -1, was = cut->choice[i];
    double max = -HUGE_VAL;

    for (int k = s->first[i]; k < s->first[i + 1]; k++) {
        const struct option *o = &s->option[k];
        double value = o->utility - (o->knapsack < 0 ? 0 : cut->price[o->knapsack] * o->bytes);
        if (value > max && side_has(side, o)) {
            max = value;
            is = k;
        }
    }
    const struct option *from = &s->option[was], *to = &s->option[is];
    cut->choice[i] = is;
    cut->utility += to->utility - from->utility;
    if (from->knapsack >= 0)
        cut->free[from->knapsack] += from->bytes;
    if (to->knapsack >= 0)
        cut->free[to->knapsack] -= to->bytes;
}

static void bound_side(struct tree *t, const struct subproblem_side *side, struct bound *b)
{
    memcpy(b->price, t->bound.price, sizeof(b->price));
    b->n_cuts = t->bound.n_cuts;
    for (int k = 0; k < b->n_cuts; k++) {
        const struct cut *from = &t->bound.cut[k];
        struct cut *to = &b->cut[k];
        int *choice = to->choice;
        *to = *from;
        to->choice = memcpy(choice, from->choice, (size_t)t->at.n * sizeof(*choice));
        turn_cut(&t->at, side, to);
    }
    subproblem_bound(&t->at, side, b, &t->state);
}

static void swap(struct bound **a, struct bound **b)
{
    struct bound *t = *a;

    *a = *b;
    *b = t;
}

/* Bounds both sides of a division into t->trial and learns from it. Returns the product of the falls of both bounds. */
static double try_division(struct tree *t, struct division *v)
{
    struct experience *e = &t->experience[t->at.context[v->side.context]];
    double product = 1;

    for (int in = 0; in < 2; in++) {
        v->side.inside = in;
        bound_side(t, &v->side, t->trial[in]);
        double fall = fmax(t->bound.value - fmax(t->trial[in]->value, t->state.target), t->rounding);
        product *= fall;
        e->fall[in] += v->score > 0 ? fall / v->score : 0;
    }
    e->n += v->score > 0;
    return product;
}

/* The product of falls expected from experience. */
static double likely_product(const struct experience *e, double score)
{
    return e->fall[0] / e->n * score * (e->fall[1] / e->n * score);
}

/* Returns the division that lowers both bounds most; t->taken gets the bounds of its sides. Contexts with enough
 * experience are judged by it, the others by a trial. */
static struct subproblem_side divide(struct tree *t)
{
    struct division v[TRIALS];
    int n = find_divisions(t, v), best = 0, tried = -1;
    double max = -1;

    for (int k = 0; k < n; k++) {
        const struct experience *e = &t->experience[t->at.context[v[k].side.context]];
        bool known = e->n >= ENOUGH;
        double product = known ? likely_product(e, v[k].score) : try_division(t, &v[k]);
        if (product <= max)
            continue;
        max = product;
        best = k;
        if (known)
            continue;
        tried = k;
        swap(&t->taken[0], &t->trial[0]);
        swap(&t->taken[1], &t->trial[1]);
    }
    if (tried != best) {
        try_division(t, &v[best]);
        swap(&t->taken[0], &t->trial[0]);
        swap(&t->taken[1], &t->trial[1]);
    }
    return v[best].side;
}

/* ---- the search ---------------------------------------------------------------------------- */

/* Bounds `at` again after it lost options, starting from the prices of its cuts. false: it is done. */
static bool bound_again(struct tree *t)
{
    for (int k = 0; k < t->bound.n_cuts; k++)
        subproblem_evaluate(&t->at, &whole, &t->bound.cut[k], &t->state);
    subproblem_bound(&t->at, &whole, &t->bound, &t->state);
    return t->bound.value > t->state.target;
}

/* Makes nodes from the two sides of `at`; NULL for a side without a wanted plan. */
static void make_sides(struct tree *t, struct node *node[2])
{
    struct subproblem_side side = divide(t);

    for (int in = 0; in < 2; in++) {
        side.inside = in;
        node[in] = NULL;
        if (t->taken[in]->value <= t->state.target)
            continue;
        subproblem_copy(&t->next, &t->at, t->n_contexts);
        t->state.options -= t->at.first[t->at.n];
        if (!subproblem_tighten(&t->next, &side, t->taken[in], t->state.target))
            continue;
        node[in] = pack(t, &t->next, t->taken[in]);
        t->failed |= !node[in];
    }
}

/* Goes down from the current node. false: out of work or memory. */
static bool dive(struct tree *t)
{
    while (!t->failed) {
        struct node *node[2];
        if (!bound_again(t) || !subproblem_tighten(&t->at, &whole, &t->bound, t->state.target) || !bound_again(t) ||
            t->at.n == 0)
            return true;
        if (t->state.options < 0)
            return false;
        make_sides(t, node);
        if (!node[0] && !node[1])
            return !t->failed;
        int next = !node[0] || (node[1] && is_before(node[1], node[0]));
        if (node[1 - next])
            push(t, node[1 - next]);
        unpack(t, node[next]);
    }
    return false;
}

static bool search(struct tree *t)
{
    bool closed = dive(t);

    while (closed && t->waiting.n > 0) {
        if (t->waiting.n > WAITING_MAX)
            return false;
        struct node *node = pop(t);
        if (node->bound <= t->state.target) { /* so are all others */
            free(node);
            return true;
        }
        unpack(t, node);
        closed = dive(t);
    }
    return closed;
}

/* ---- the root ------------------------------------------------------------------------------ */

static bool can_be_better(const void *arg, struct move *m)
{
    const struct incumbent *x = arg;

    m->loss = incumbent_loss(x, m->context, &m->to);
    return m->loss <= incumbent_gap(x);
}

static int sign(double difference)
{
    return (difference > 0) - (difference < 0);
}

/* By context, knapsack and bytes, then by falling utility and by config. */
static int by_place(const void *a, const void *b)
{
    const struct move *x = a, *y = b;

    if (x->context != y->context)
        return x->context < y->context ? -1 : 1;
    if (x->to.knapsack != y->to.knapsack)
        return x->to.knapsack - y->to.knapsack;
    if (x->to.bytes != y->to.bytes)
        return x->to.bytes < y->to.bytes ? -1 : 1;
    return x->to.utility < y->to.utility || x->to.utility > y->to.utility ? sign(y->to.utility - x->to.utility)
                                                                          : x->to.config - y->to.config;
}

static int find_candidates(struct tree *t, const struct plan_problem *problem, struct err *err)
{
    const struct moves_filter filter = { .undominated = true, .price = can_be_better, .arg = t->x };
    struct moves *l = &t->candidates;
    int n = 0;

    if (moves_find(l, t->x, problem, &filter, err))
        return err->code;
    if (l->n > 0)
        qsort(l->at, (size_t)l->n, sizeof(*l->at), by_place);
    for (int k = 0; k < l->n; k++) {
        const struct move *last = &l->at[n - (n > 0)], *m = &l->at[k];
        if (n == 0 || last->context != m->context || last->to.knapsack != m->to.knapsack ||
            last->to.bytes != m->to.bytes)
            l->at[n++] = *m;
    }
    l->n = n;
    return 0;
}

/* Sets up the root: all candidates, the capacities, the prices of the dual. */
static void go_to_root(struct tree *t)
{
    struct subproblem *s = &t->at;
    const struct dual *dual = t->x->dual;

    for (int d = 0; d < t->n_knapsacks; d++) {
        s->left[d] = (double)t->x->h->knapsack.capacity[d];
        t->state.max_price[d] = 3 * dual->price[d];
    }
    for (int k = 0; k < t->candidates.n; k++) {
        const struct move *m = &t->candidates.at[k];
        if (k == 0 || m->context != m[-1].context) {
            s->first[s->n] = k;
            s->context[s->n++] = m->context;
        }
        s->option[k] = option_of(t, k);
        if (m->to.knapsack >= 0) {
            double *max = &t->state.max_price[m->to.knapsack];
            *max = fmax(*max, fabs(incumbent_gain(t->x, m)) / (double)m->to.bytes);
        }
    }
    for (int d = 0; d < t->n_knapsacks; d++)
        t->state.max_price[d] *= price_reach;
    s->first[s->n] = t->candidates.n;
    t->bound.n_cuts = dual->n_plans;
    memcpy(t->bound.price, dual->price, sizeof(t->bound.price));
    for (int k = 0; k < dual->n_plans; k++)
        memcpy(t->bound.cut[k].price, dual->plan_price[k], sizeof(dual->plan_price[k]));
}

static int tree_init(struct tree *t, struct incumbent *x, const struct plan_problem *problem, struct err *err)
{
    int n = problem->n_contexts;

    t->x = x;
    t->n_contexts = n;
    t->n_knapsacks = x->h->knapsack.n;
    t->state.found = keep_plan;
    t->state.arg = t;
    if (find_candidates(t, problem, err))
        return err->code;
    t->best = calloc((size_t)n + 1, sizeof(*t->best));
    t->experience = calloc((size_t)n + 1, sizeof(*t->experience));
    bool failed = !t->best || !t->experience || bound_init(&t->bound, n) ||
                  subproblem_init(&t->at, n, t->candidates.n) || subproblem_init(&t->next, n, t->candidates.n);
    t->at.n_knapsacks = t->n_knapsacks;
    for (int k = 0; k < 4; k++) {
        failed = failed || bound_init(&t->bounds[k], n);
        *(k < 2 ? &t->taken[k] : &t->trial[k - 2]) = &t->bounds[k];
    }
    return failed ? err_nomem(err) : 0;
}

static void tree_free(struct tree *t)
{
    for (int k = 0; k < t->waiting.n; k++)
        free(t->waiting.at[k]);
    free(t->waiting.at);
    for (int k = 0; k < 4; k++)
        bound_release(&t->bounds[k]);
    bound_release(&t->bound);
    subproblem_release(&t->at);
    subproblem_release(&t->next);
    moves_release(&t->candidates);
    free(t->best);
    free(t->experience);
    free(t);
}

int incumbent_branch(struct incumbent *x, const struct plan_problem *problem, int64_t work, bool *closed,
                     struct err *err)
{
    double rounding_error = incumbent_rounding(x);

    *closed = incumbent_gap(x) <= rounding_error;
    if (*closed)
        return 0;
    struct tree *t = calloc(1, sizeof(*t));
    int code = t ? tree_init(t, x, problem, err) : err_nomem(err);
    if (!code && t->candidates.n < MOVES_MAX) { /* else the list may be cut */
        t->rounding = rounding_error;
        t->state.target = incumbent_objective(x) + t->rounding;
        t->state.options = work * OPTIONS_PER_WORK;
        go_to_root(t);
        *closed = search(t);
        code = t->failed ? err_nomem(err) : 0;
        for (int i = 0; i < t->n_contexts && t->found; i++)
            incumbent_apply(x, &t->candidates.at[t->best[i]]);
    }
    if (t)
        tree_free(t);
    return code;
}
