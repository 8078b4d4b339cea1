/* Request logs: the tree of beginnings against a plain count, the choice among them, moments, what a line holds. */
#include "base/rng.h"
#include "logs/prefix_tree.h"
#include "logs/request.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the tree ------------------------------------------------------------- */

enum { TEXTS = 60, MAX_CHUNKS = 6, TEXT = MAX_CHUNKS * PREFIX_CHUNK + 1 };

struct texts {
    char at[TEXTS][TEXT];
    size_t n[TEXTS];
};

/* Texts whose chunks are one of two, so that many begin alike; some end with a chunk, some within one. */
static void random_texts(struct texts *t, uint64_t seed)
{
    struct rng r = rng_new(seed);

    for (int i = 0; i < TEXTS; i++) {
        size_t chunks = 1 + rng_below(&r, MAX_CHUNKS);
        for (size_t c = 0; c < chunks; c++)
            memset(t->at[i] + c * PREFIX_CHUNK, 'a' + (char)rng_below(&r, 2), PREFIX_CHUNK);
        t->n[i] = chunks * PREFIX_CHUNK - rng_below(&r, 2) * 100;
        if (rng_below(&r, 2))
            t->at[i][t->n[i]++] = 'x';
    }
}

static bool passes(const struct texts *t, int i, const char *text, size_t depth)
{
    return t->n[i] > depth * PREFIX_CHUNK && memcmp(t->at[i], text, depth * PREFIX_CHUNK) == 0;
}

static struct prefix_tree tree_of(const struct texts *t)
{
    struct prefix_tree tree = { 0 };
    struct err err;

    for (int i = 0; i < TEXTS; i++)
        cr_assert_eq(prefix_add(&tree, &(struct prefix_text){ .at = t->at[i], .n = t->n[i] }, &err), 0);
    return tree;
}

static int32_t node_of(const struct prefix_tree *tree, const char *text, size_t depth)
{
    uint64_t key = 0;

    for (size_t c = 0; c < depth; c++)
        key = prefix_key(key, text + c * PREFIX_CHUNK);
    return prefix_find(tree, key);
}

Test(requests, a_node_counts_the_texts_that_go_on_after_it)
{
    static struct texts t;

    for (uint64_t seed = 0; seed < 20; seed++) {
        random_texts(&t, seed);
        struct prefix_tree tree = tree_of(&t);
        for (int i = 0; i < TEXTS; i++)
            for (size_t depth = 1; depth * PREFIX_CHUNK < t.n[i]; depth++) {
                uint32_t want = 0;
                for (int k = 0; k < TEXTS; k++)
                    want += passes(&t, k, t.at[i], depth);
                int32_t node = node_of(&tree, t.at[i], depth);
                cr_assert_geq(node, 0);
                cr_assert_eq(tree.at[node].uses, want);
                cr_assert_eq(tree.at[node].depth, depth);
                cr_assert_lt(tree.at[node].parent, node);
            }
        prefix_tree_release(&tree);
    }
}

/* Every text belongs to the deepest marked node on its way; each marked node has min_uses of its own, and no node could
 * be marked besides. */
Test(requests, marked_nodes_have_enough_texts_of_their_own)
{
    static struct texts t;
    const struct prefix_choice choice = { .min_uses = 3, .min_bytes = 2 * PREFIX_CHUNK };
    struct err err;

    for (uint64_t seed = 0; seed < 20; seed++) {
        random_texts(&t, seed);
        struct prefix_tree tree = tree_of(&t);
        int32_t *mark = calloc((size_t)tree.n, sizeof(*mark));
        int n = prefix_choose(&tree, &choice, mark, &err), own[2 * TEXTS * MAX_CHUNKS] = { 0 }, seen = 0;
        int first[2 * TEXTS * MAX_CHUNKS], kinds[2 * TEXTS * MAX_CHUNKS] = { 0 };
        for (int i = 0; i < TEXTS; i++) {
            int32_t found = -1;
            for (size_t depth = 1; depth * PREFIX_CHUNK < t.n[i]; depth++) {
                int32_t node = node_of(&tree, t.at[i], depth);
                found = mark[node] >= 0 ? node : found;
            }
            if (found < 0)
                continue;
            first[found] = own[found]++ ? first[found] : i;
            kinds[found] |= t.n[i] != t.n[first[found]] || memcmp(t.at[i], t.at[first[found]], t.n[i]) != 0;
        }
        for (int i = 0; i < tree.n; i++) {
            cr_assert(mark[i] < 0 || (own[i] >= 3 && kinds[i] && tree.at[i].depth >= 2 && mark[i] == seen), "node %d",
                      i);
            seen += mark[i] >= 0;
        }
        cr_assert_eq(seen, n);
        const struct prefix_choice two = { .min_uses = 3, .min_bytes = 2 * PREFIX_CHUNK, .top = 2 };
        cr_assert_eq(prefix_choose(&tree, &two, mark, &err), n < 2 ? n : 2);
        free(mark);
        prefix_tree_release(&tree);
    }
}

Test(requests, the_best_have_the_largest_bytes_times_uses)
{
    struct prefix_tree tree = { 0 };
    struct err err;
    char text[5 * PREFIX_CHUNK];
    int32_t mark[32];

    for (int i = 0; i < 9; i++) { /* 'a': 4 texts of 2 chunks; 'b': 3 of 4 chunks; 'c': 2 of 4 chunks */
        size_t n = (size_t)(i < 4 ? 2 : 4) * PREFIX_CHUNK;
        memset(text, i < 4 ? 'a' : i < 7 ? 'b' : 'c', sizeof(text));
        text[n] = (char)('0' + i);
        cr_assert_eq(prefix_add(&tree, &(struct prefix_text){ .at = text, .n = n + 1 }, &err), 0);
    }
    cr_assert_eq(tree.n, 10 + 9);
    const struct prefix_choice choice = { .min_uses = 2, .top = 1 };
    cr_assert_eq(prefix_choose(&tree, &choice, mark, &err), 1);
    memset(text, 'b', sizeof(text));
    cr_assert_eq(mark[prefix_find(&tree, prefix_key(prefix_key(prefix_key(prefix_key(0, text), text), text), text))],
                 0);
    prefix_tree_release(&tree);
}

/* A question that is asked again and again, and has the border of a chunk within it, counts for the document. */
Test(requests, equal_texts_count_for_the_beginning_before_them)
{
    const struct prefix_choice choice = { .min_uses = 2 };
    struct prefix_tree tree = { 0 };
    struct err err;
    char text[2 * PREFIX_CHUNK + 1];
    int32_t mark[32];

    for (int i = 0; i < 6; i++) { /* 'x' four times, 'y' and 'z' once */
        memset(text, 'd', PREFIX_CHUNK);
        memset(text + PREFIX_CHUNK, i < 4 ? 'x' : 'x' + i - 3, PREFIX_CHUNK + 1);
        cr_assert_eq(prefix_add(&tree, &(struct prefix_text){ .at = text, .n = sizeof(text) }, &err), 0);
    }
    cr_assert_eq(prefix_choose(&tree, &choice, mark, &err), 1);
    cr_assert_eq(mark[prefix_find(&tree, prefix_key(0, text))], 0);
    prefix_tree_release(&tree);

    cr_assert_eq(prefix_add(&tree, &(struct prefix_text){ .at = text, .n = sizeof(text) }, &err), 0);
    cr_assert_eq(prefix_add(&tree, &(struct prefix_text){ .at = text, .n = sizeof(text) }, &err), 0);
    cr_assert_eq(prefix_choose(&tree, &choice, mark, &err), 0, "equal texts alone are no context");
    prefix_tree_release(&tree);
}

/* ---- moments -------------------------------------------------------------- */

Test(requests, moments)
{
    static const struct {
        const char *text;
        double want;
    } cases[] = {
        { "0", 0 },
        { "1763791080", 1763791080 },
        { "1763791080.25", 1763791080.25 },
        { "1763791080250", 1763791080.25 },
        { "1763791080250000", 1763791080.25 },
        { "1763791080250000000", 1763791080.25 },
        { "2025-11-22T05:58:00Z", 1763791080 },
        { "2025-11-22 05:58:00", 1763791080 },
        { "2025-11-22T05:58:00.25+00:00", 1763791080.25 },
        { "2025-11-22 05:58:00,250", 1763791080.25 },
        { "2025-11-22T07:58:00+0200", 1763791080 },
        { "2025-11-22T03:28:00-02:30", 1763791080 },
        { "22/Nov/2025:05:58:00 +0000", 1763791080 },
        { "1970-01-01T00:00:00Z", 0 },
        { "2000-02-29T00:00:00Z", 951782400 },
        { "1969-12-31T23:59:59Z", -1 },
        { "2025-12-31T00:00:00Z", 1767139200 },
    };
    static const char *const wrong[] = { "",
                                         "soon",
                                         "-5",
                                         "2025-11-22",
                                         "2025-13-22T05:58:00Z",
                                         "2025-11-22T05:58:00 o'clock",
                                         "2025-02-29T00:00:00Z",
                                         "2025-04-31T00:00:00Z",
                                         "2025-11-22T25:58:00Z",
                                         "2025-11-22T05:58:00+2",
                                         "22/Nox/2025:05:58:00 +0000",
                                         "22/ovD/2025:05:58:00 +0000" };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        cr_assert_float_eq(request_time(cases[i].text), cases[i].want, 1e-6, "%s: %f", cases[i].text,
                           request_time(cases[i].text));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        cr_assert(isnan(request_time(wrong[i])), "%s", wrong[i]);
}

/* The year that vLLM leaves out is the last one in which the moment exists and is not after the log's end. */
Test(requests, moments_before_a_line)
{
    static const double end = 1767225600; /* 2026-01-01 */
    static const struct {
        const char *line;
        double newest, want;
    } cases[] = {
        { "INFO 12-31 23:59:59 [logger.py:49] Received", end, end - 1 },
        { "(APIServer pid=90458) DEBUG 01-01 00:00:00 [logger.py:49] Request", end, end },
        { "INFO 01-01 00:00:01 [logger.py:49] Received", end, 1735689601 },
        { "INFO 02-29 12:00:00 [x.py:1] x", end, 1709208000 },
        { "INFO 02-29 12:00:00 [x.py:1] x", 4107542400, 3981355200 }, /* 2100 is no leap year: 2096 */
        { "INFO 02-30 12:00:00 [x.py:1] x", end, (double)NAN },
        { "[2025-11-22 05:58:00] {\"event\"", 0, 1763791080 },
        { "[2025-11-22 05:58:00 TP0] Prefill", 0, 1763791080 },
        { "2025-11-22T05:58:00.25Z stdout F INFO 01-01 00:00:00 [x.py:1] x", 0, 1763791080.25 },
        { "INFO 13-01 00:00:00 [x.py:1] x", end, (double)NAN },
        { "pages 12-31 of the book", end, (double)NAN },
        { "INFO 12-31 23:59:59 [x.py:1] x", 1e300, (double)NAN },
        { "INFO 12-31 23:59:59 [x.py:1] x", -1e300, (double)NAN },
        { "", end, (double)NAN },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        double t = request_time_before(cases[i].line, cases[i].newest);
        cr_assert(isnan(cases[i].want) ? isnan(t) : fabs(t - cases[i].want) < 1e-6, "%s: %f", cases[i].line, t);
    }
}

/* ---- lines ---------------------------------------------------------------- */

struct seen {
    struct buf text; // of all requests: roles as letters, texts in brackets
};

static int see(void *arg, const struct request *r, struct err *err)
{
    struct seen *s = arg;

    (void)err;
    for (int i = 0; i < r->message.n; i++) {
        size_t end = i + 1 < r->message.n ? r->message.at[i + 1] - REQUEST_MARK : r->bytes.n;
        buf_printf(&s->text, "%c[%.*s]", turn_role_name(request_role(r, i))[0], (int)(end - r->message.at[i]),
                   r->bytes.at + r->message.at[i]);
    }
    buf_printf(&s->text, "%s%s;", r->model.n ? "@" : "", buf_str(&r->model));
    return 0;
}

struct holds {
    const char *line, *want;
    int flaw; // -1: none
};

static void check_line(const struct holds *c, bool bytes_suffice)
{
    struct request_line l = { .bytes_suffice = bytes_suffice };
    struct seen s = { 0 };
    struct err err;
    const struct request_visitor visitor = { see, &s };

    cr_assert_eq(request_read(&l, c->line, strlen(c->line), &visitor, &err), 0, "%s", c->line);
    request_end(&l);
    cr_assert_str_eq(buf_str(&s.text), c->want, "%s", c->line);
    for (int f = 0; f < N_REQUEST_FLAWS; f++)
        cr_assert_eq(l.flaws[f], f == c->flaw, "%s: flaw %d", c->line, f);
    cr_assert_eq(l.n_flawed, c->flaw >= 0 && c->flaw < REQUEST_ASIDE);
    buf_release(&s.text);
    request_line_release(&l);
}

Test(requests, what_a_line_holds)
{
    static const struct holds cases[] = {
        { "{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"u\"}],\"model\":"
          "\"m\"}",
          "s[s]u[u]@m;", -1 },
        { "{\"prompt\":[\"a\",\"b\"]}", "p[a];p[b];", -1 },
        { "{\"prompt\":[1,2]}", "", REQUEST_TOKENS },
        { "{\"prompt\":\"na\xefve\"}", "p[na\xef\xbf\xbdve];", -1 },
        { "{\"body\":{\"body\":{\"body\":{\"body\":{\"prompt\":\"deep\"}}}}}", "p[deep];", -1 },
        { "{\"a\":{\"b\":[[{\"c\":{\"model\":\"m\",\"prompt\":\"deep\"}}]]}}", "p[deep]@m;", -1 },
        { "[{\"prompt\":\"a\",\"model\":\"m\"},{\"prompt\":\"b\"}]", "p[a]@m;p[b];", -1 },
        { "{\"a\":{\"prompt\":\"not a request\"}}", "", -1 },
        { "{\"a\":{\"output\":{\"model\":\"m\",\"prompt\":\"an answer\"}}}", "", -1 },
        { "[[[[[[[[[[[[[[[[[[{\"prompt\":\"too deep\"}]]]]]]]]]]]]]]]]]]", "", -1 },
        { "{\"MESSAGE\":[123,34,112,114,111,109,112,116,34,58,34,97,34,125]}", "p[a];", -1 },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"u\"},{\"role\":\"system\",\"content\":\"s\"}]}", "",
          REQUEST_ROLES },
        { "{\"messages\":[{\"role\":\"user\",\"content\":null}]}", "", REQUEST_TOOLS },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"u\"},{\"role\":\"assistant\",\"content\":\"a\","
          "\"tool_calls\":[{}]}]}",
          "", REQUEST_TOOLS },
        { "{\"messages\":[{\"role\":\"prompt\",\"content\":\"u\"}]}", "", REQUEST_ROLES },
        { "{\"messages\":[]}", "", REQUEST_END },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"u\"}],\"chat_template\":\"x\"}", "", REQUEST_TEMPLATE },
        { "{\"event\":\"request.finished\",\"obj\":{\"text\":\"t\",\"sampling_params\":{}}}", "", -1 },
        { "{\"text\":\"a page\"}", "", -1 },
        { "Received request 1: prompt: 'a\\n\\'b\\' \\u20ac \\U0001f600 \\x41', params: x",
          "p[a\n'b' \xe2\x82\xac "
          "\xf0\x9f\x98\x80 A];",
          -1 },
        { "Received request 1: prompt: \"it's\", params: x", "p[it's];", -1 },
        { "Received request 1: prompt: 'a\\ud800', params: x", "", REQUEST_CUT },
        { "Received request 1: prompt: 'a\\x4", "", REQUEST_CUT },
        { "Received request 1: prompt: 'a\\", "", REQUEST_CUT },
        { "Received request 1: prompt: None, params: x", "", -1 },
        { "DEBUG 11-22 05:58:00 [r.py:79] Request 1 JSON body: {\"prompt\":\"say prompt: 'a' to the requester\"}",
          "p[say prompt: 'a' to the requester];", -1 },
        { "DEBUG 11-22 05:58:00 [r.py:79] Request 1 JSON body: {\"prompt\":\"say pro", "", REQUEST_CUT },
        { "Received request 1: prompt: '{\"a\": 1}', params: x", "p[{\"a\": 1}];", -1 },
        { "proxy_1  | {\"model\":\"m\",\"prompt\":\"a\"}", "p[a]@m;", -1 },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"redacted-by-litellm\"}]}", "", REQUEST_CUT },
        { "Request 1 details: prompt: None, prompt_token_ids: [1, 2]", "", REQUEST_TOKENS },
        { "{\"model\":\"m\",\"input\":\"a question\"}", "", REQUEST_UNKNOWN },
        { "{\"body\":\"{\\\"contents\\\":[{\\\"parts\\\":[]}]}\"}", "", REQUEST_TOOLS },
        { "{\"contents\":[5]}", "", REQUEST_UNKNOWN },
        { "INFO: {\"inputs\":\"a question\",\"parameters\":{}}", "p[a question];", -1 },
        { "INFO: {\"inputs\":\"a question\"}", "", REQUEST_UNKNOWN },
        { "{\"input\":\"a question\",\"log\":\"at {\\\"status\\\":200}\"}", "", REQUEST_UNKNOWN },
        { "{\"messages\":\"a question\"}", "", REQUEST_UNKNOWN },
        { "{\"messages\":\"{}\",\"call_type\":\"acompletion\"}", "", -1 },
        { "{\"input\":5,\"prompt\":null,\"contents\":{}}", "", -1 },
        { "{\"level\":\"info\",\"msg\":\"the prompt has 5 messages\"}", "", -1 },
        { "{\"event\":\"request.received\",\"obj\":{\"input_ids\":[1],\"sampling_params\":{}}}", "", -1 },
        { "2026-11-22T05:58:00Z stdout P {\"model\":\"m\",\"messages\":[{\"role\":\"us", "", REQUEST_CUT },
        { "{\"log\":\"{\\\"prompt\\\":\\\"a que\"}", "", REQUEST_CUT },
        { "{\"body\":\"{\\\"prompt\\\":\\\"a que\",\"msg\":\"{\\\"prompt\\\":\\\"a que\"}", "", REQUEST_CUT },
        { "proxy_1  | {\"status\":\"200", "", -1 },
        { "prompt: 'a'", "", -1 },
        { "", "", -1 },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        check_line(&cases[i], false);
}

/* Where only equal beginnings matter, what a template writes in its own way becomes bytes. */
Test(requests, bytes_stand_for_what_has_no_text)
{
#define USER "{\"role\":\"user\",\"content\":\"u\"}"
#define DONE "{\"role\":\"assistant\",\"content\":"
    static const struct holds cases[] = {
        { "{\"tools\":[ {\"a\": 1} ],\"messages\":[" USER "]}", "p[[{\"a\":1}]]u[u];", -1 },
        { "{\"messages\":[" USER "],\"tools\":[1],\"chat_template\":\"t\"}", "p[[1]\"t\"]u[u];", -1 },
        { "{\"chat_template_kwargs\":{\"documents\":[2]},\"messages\":[" USER "]}", "p[[2]]u[u];", -1 },
        { "{\"tools\":[1],\"prompt\":[\"a\",\"b\"]}", "p[[1]]p[a];p[[1]]p[b];", -1 },
        { "{\"messages\":[{\"role\":\"developer\",\"content\":\"d\"}," USER "]}", "p[developerd]u[u];", -1 },
        { "{\"messages\":[" USER "," DONE "null,\"reasoning_content\":\"r\",\"tool_calls\":[{\"id\":\"i\"}]},"
          "{\"role\":\"tool\",\"content\":\"x\"}]}",
          "u[u]a[r[{\"id\":\"i\"}]]p[toolx];", -1 },
        { "{\"messages\":[" USER "," DONE "\"<think>r</think>a\"}]}", "u[u]a[<think>r</think>a];", -1 },
        { "{\"messages\":[" DONE
          "[{\"type\":\"thinking\",\"thinking\":\"t\"},{\"type\":\"tool_use\",\"cache_control\":{},"
          "\"input\":{}}]},{\"role\":\"user\",\"content\":["
          "{\"type\":\"tool_result\",\"content\":[{\"text\":\"x\"}]}]}]}",
          "a[\ntype:\"thinking\"\nthinking:\"t\"\n\ntype:\"tool_use\"\ninput:{}]u[\ntype:\"tool_result\"\ncontent:x];",
          -1 },
        { "{\"store\":true,\"input\":[{\"type\":\"function_call\",\"name\":\"n\"},"
          "{\"role\":\"user\",\"content\":\"u\"}]}",
          "p[\ntype:\"function_call\"\nname:\"n\"]u[u];", -1 },
        { "{\"store\":true,\"input\":[{\"type\":\"item_reference\",\"id\":\"n\"}]}", "", REQUEST_ELSEWHERE },
        { "{\"messages\":[" USER "],\"previous_response_id\":\"r\"}", "", REQUEST_ELSEWHERE },
        { "{\"prompt\":[1094795585,\"x\"]}", "p[AAAAx];", -1 },
        { "{\"prompt\":[[1094795585],[1111638594]]}", "p[AAAA];p[BBBB];", -1 },
        { "{\"event\":\"request.received\",\"obj\":{\"input_ids\":[1094795585],\"sampling_params\":{}}}", "p[AAAA];",
          -1 },
        { "{\"event\":\"request.finished\",\"obj\":{\"text\":\"t\",\"input_ids\":[1],\"sampling_params\":{}}}", "",
          -1 },
        { "Request 1 details: prompt: None, prompt_token_ids: [1094795585, 1094795585], prompt_embeds", "p[AAAAAAAA];",
          -1 },
        { "Request 1 details: prompt: None, prompt_token_ids: [1094795585, 10", "", REQUEST_CUT },
        { "{\"messages\":[]}", "", REQUEST_END },
    };
#undef USER
#undef DONE

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        check_line(&cases[i], true);
}

static int measure(void *arg, const struct request *r, struct err *err)
{
    struct request *last = arg;

    (void)err;
    *last = *r;
    last->n_front = r->bytes.n; /* the bytes themselves are the line's */
    return 0;
}

Test(requests, media_have_a_size_and_adapters_a_key)
{
    static const char *const lines[] = {
        "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"x\"}}]}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"u\"}],\"lora_path\":\"a\"}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"u\"}],\"lora_path\":\"b\"}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"u\"}]}",
        "Received request 1: prompt: 'u', params: x, lora_request: LoRARequest(lora_name='a').",
    };
    struct request r[sizeof(lines) / sizeof(*lines)];
    struct request_line l = { .bytes_suffice = true };
    struct err err;

    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        const struct request_visitor visitor = { measure, &r[i] };
        cr_assert_eq(request_read(&l, lines[i], strlen(lines[i]), &visitor, &err), 0);
    }
    cr_assert_eq(r[0].n_front, REQUEST_MARK + 4 * REQUEST_MEDIUM_TOKENS);
    cr_assert(r[0].opaque && !r[1].opaque);
    cr_assert(r[1].apart && r[1].apart != r[2].apart && !r[3].apart && r[4].apart);
    request_line_release(&l);
}

Test(requests, a_damaged_line_is_said_without_its_words)
{
    static const char line[] = "{\"prompt\":\"my secret";
    struct request_line l = { 0 };
    struct err err;

    const struct request_visitor visitor = { see, NULL };
    cr_assert_eq(request_read(&l, line, strlen(line), &visitor, &err), REQUEST_DAMAGED);
    cr_assert(!strstr(err.msg, "secret"), "%s", err.msg);
    request_line_release(&l);
}
