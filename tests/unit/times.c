/* Times that somebody measured: read, looked up, put into a table. */
#include "profiler/score/times.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static int read_text(struct times *t, const char *text, struct err *err)
{
    struct json *root = json_parse(text, strlen(text), err);

    cr_assert(root, "%s", err->msg);
    int code = times_from_json(t, root, err);
    json_free(root);
    return code;
}

#define GOOD                                                                                                           \
    "{\"evp\":\"times\",\"version\":1,\"prefill\":[{\"n_tokens\":1000,\"seconds\":2},{\"n_tokens\":2000,\"seconds\":"  \
    "6}],"                                                                                                             \
    "\"question\":[{\"n_tokens\":1000,\"seconds\":0.5},{\"n_tokens\":3000,\"seconds\":0.75}],"                         \
    "\"decompress\":[{\"config\":\"kivi:bits=2\",\"bytes_per_s\":1000},{\"config\":\"kivi\",\"bytes_per_s\":500}]}"

Test(times, lie_on_lines_between_points)
{
    struct times t;
    struct err err;

    cr_assert_eq(read_text(&t, GOOD, &err), 0, "%s", err.msg);
    cr_assert_str_eq(t.name, "");
    cr_assert_eq(times_prefill_s(&t, 500), 1);
    cr_assert_eq(times_prefill_s(&t, 1000), 2);
    cr_assert_eq(times_prefill_s(&t, 1500), 4);
    cr_assert_eq(times_prefill_s(&t, 3000), 10); // behind the last point
    cr_assert_eq(times_question_s(&t, 1), 0.5);
    cr_assert_eq(times_question_s(&t, 2000), 0.625);
    cr_assert_eq(times_question_s(&t, 5000), 1);
    times_release(&t);
    cr_assert_eq(
        read_text(&t,
                  "{\"evp\":\"times\",\"version\":1,\"name\":\"n\",\"prefill\":[{\"n_tokens\":10,\"seconds\":1}],"
                  "\"question\":[{\"n_tokens\":10,\"seconds\":3}]}",
                  &err),
        0, "%s", err.msg);
    cr_assert_str_eq(t.name, "n");
    cr_assert(times_prefill_s(&t, 20) == 2 && times_question_s(&t, 20) == 3 && t.decompress.n == 0);
    times_release(&t);
}

#define HEAD   "{\"evp\":\"times\",\"version\":1,"
#define POINT  "[{\"n_tokens\":1,\"seconds\":1}]"
#define CURVES HEAD "\"prefill\":" POINT ",\"question\":" POINT

Test(times, what_is_refused)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        { "{\"evp\":\"tiers\",\"version\":1}", "it holds 'tiers', not times" },
        { "{\"evp\":\"times\",\"version\":2}", "it is of version 2; this program reads version 1" },
        { HEAD "\"question\":" POINT "}", "field 'prefill' is not a list of points" },
        { HEAD "\"prefill\":[],\"question\":" POINT "}", "field 'prefill' is not a list of points" },
        { HEAD "\"prefill\":" POINT ",\"question\":[{\"n_tokens\":0,\"seconds\":1}]}",
          "field 'question': field 'n_tokens'" },
        { HEAD "\"prefill\":[{\"n_tokens\":1,\"seconds\":-1}],\"question\":" POINT "}",
          "field 'prefill': field 'seconds'" },
        { HEAD "\"prefill\":[{\"n_tokens\":2,\"seconds\":1},{\"n_tokens\":2,\"seconds\":2}],\"question\":" POINT "}",
          "the points do not rise: 2 tokens in 2 s after 2 in 1 s" },
        { HEAD "\"prefill\":[{\"n_tokens\":2,\"seconds\":1},{\"n_tokens\":3,\"seconds\":0.5}],\"question\":" POINT "}",
          "the points do not rise" },
        { CURVES ",\"decompress\":{}}", "field 'decompress' is not a list" },
        { CURVES ",\"decompress\":[{\"config\":\"kivi\"}]}", "field 'decompress': field 'bytes_per_s'" },
        { CURVES ",\"decompress\":[{\"config\":\"\",\"bytes_per_s\":1}]}", "field 'config' is empty" },
        { CURVES ",\"decompress\":[{\"config\":\"k\",\"bytes_per_s\":0}]}", "field 'bytes_per_s' is 0" },
        { CURVES ",\"name\":7}", "field 'name'" },
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct times t;
        struct err err;
        cr_assert_eq(read_text(&t, bad[i].text, &err), ERR_FORMAT, "%s", bad[i].text);
        cr_assert(strstr(err.msg, bad[i].why), "%s: %s", bad[i].text, err.msg);
        cr_assert(!t.prefill.at && !t.name);
    }
}

/* Contexts of 1,000 and 2,500 tokens; none, kivi:bits=4 behind snapkv, a config that needs no time. */
static void make(struct table *t)
{
    static const char *const config[] = { "none", "snapkv:drop=0.5+kivi:bits=4", "knorm:drop=0.5", "kivi:bits=2" };
    struct err err;

    cr_assert_eq(table_alloc(t, 2, 4, 0, &err), 0);
    cr_assert_eq(table_alloc_curve(t, 2, &err), 0);
    for (int c = 0; c < 2; c++) {
        t->context_id[c] = c ? "b" : "a";
        t->n_tokens[c] = c ? 2500 : 1000;
        t->kv_bytes[c] = 10 * t->n_tokens[c];
        t->prefill_s[c] = 100;
        t->prefill_spread[c] = t->question_spread[c] = 0.5;
        t->prefill_n[c] = 2;
        t->curve_context[c] = 1;
        t->curve_n_tokens[c] = c ? 2500 : 500;
        t->curve_s[c] = 50 + 50 * c;
        for (int v = 0; v < 4; v++) {
            size_t i = table_cell(t, c, v);
            t->config_name[v] = config[v];
            t->cell_bytes[i] = 1;
            t->size_frac[i] = 1;
            t->keep_frac[i] = v == 1 || v == 2 ? 0.5 : 1;
            t->decompress_s[i] = v == 1 || v == 3 ? 7 : 0;
            t->decode_s[0][i] = 7;
        }
    }
}

Test(times, replace_those_of_a_table)
{
    struct times times;
    struct table t;
    struct err err;
    int n_longer;

    cr_assert_eq(read_text(&times, GOOD, &err), 0, "%s", err.msg);
    make(&t);
    for (int again = 0; again < 2; again++) {
        cr_assert_eq(times_apply(&t, &times, &n_longer, &err), 0, "%s", err.msg);
        cr_assert(t.prefill_s[0] == 2 && t.prefill_s[1] == 8 && t.question_s[0] == 0.5 && n_longer == 1);
        cr_assert(t.curve_s[0] == 1 && t.curve_s[1] == 8, "the last point of a curve is the whole");
        cr_assert(isnan(t.prefill_spread[0]) && isnan(t.question_spread[1]) && t.prefill_n[0] == -1);
        cr_assert(t.decompress_s[0] == 0 && t.decompress_s[2] == 0);
        cr_assert_eq(t.decompress_s[1], 0.5 * 10000 / 500); // by the last link's method
        cr_assert_eq(t.decompress_s[3], 10000.0 / 1000);    // the first rate that fits
        cr_assert(isnan(t.decode_s[0][0]), "of the machine that profiled");
        cr_assert_eq(table_check(&t, &err), 0, "%s", err.msg);
    }
    times.decompress.at[1].config[0] = 'K';
    cr_assert_eq(times_apply(&t, &times, &n_longer, &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "it has no decompression rate for config 'snapkv:drop=0.5+kivi:bits=4'");
    t.n_tokens[1] = -1;
    cr_assert_eq(times_apply(&t, &times, &n_longer, &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "the times of context 'b' are unknown: it has no number of tokens");
    table_release(&t);
    times_release(&times);
}
