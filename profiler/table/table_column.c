/* table_column.c - the list of HDF5 datasets in the order of writing, and access to the members of struct table. */
#include "profiler/table/table_column.h"

#include <math.h>
#include <string.h>

#define AT(member) offsetof(struct table, member)
const struct column table_columns[TABLE_COLUMNS] = {
    { "/contexts/id", COLUMN_TEXT, "C", AT(context_id), SECTION_PROFILE, true, NEEDED },
    { "/contexts/dataset", COLUMN_TEXT, "C", AT(context_dataset), SECTION_PROFILE, false, NEEDED },
    { "/contexts/token_digest", COLUMN_TEXT, "C", AT(context_token_digest), SECTION_PROFILE, true, NEEDED },
    { "/contexts/n_tokens", COLUMN_I64, "C", AT(n_tokens), SECTION_PROFILE, true, NEEDED },
    { "/contexts/kv_bytes", COLUMN_I64, "C", AT(kv_bytes), SECTION_PROFILE, true, NEEDED },
    { "/contexts/prefill_s", COLUMN_F64, "C", AT(prefill_s), SECTION_PROFILE, true, NEEDED },
    { "/contexts/question_s", COLUMN_F64, "C", AT(question_s), SECTION_PROFILE, true, MAY_LACK_0 },
    { "/contexts/prefill_n", COLUMN_I64, "C", AT(prefill_n), SECTION_PROFILE, true, MAY_LACK },
    { "/contexts/prefill_spread", COLUMN_F64, "C", AT(prefill_spread), SECTION_PROFILE, true, MAY_LACK },
    { "/contexts/question_spread", COLUMN_F64, "C", AT(question_spread), SECTION_PROFILE, true, MAY_LACK },
    { "/contexts/prefill_flop", COLUMN_F64, "C", AT(prefill_flop), SECTION_PROFILE, false, MAY_LACK },
    { "/contexts/profiled_at", COLUMN_F64, "C", AT(profiled_at), SECTION_PROFILE, false, MAY_LACK },
    { "/contexts/prefix_digests", COLUMN_TEXT, "C", AT(context_prefix_digests), SECTION_PROFILE, true, MAY_LACK },
    { "/configs/name", COLUMN_TEXT, "V", AT(config_name), SECTION_PROFILE, true, NEEDED },
    { "/questions/id", COLUMN_TEXT, "Q", AT(question_id), SECTION_PROFILE, false, NEEDED },
    { "/questions/text", COLUMN_TEXT, "Q", AT(question_text), SECTION_PROFILE, false, NEEDED },
    { "/questions/split", COLUMN_TEXT, "Q", AT(question_split), SECTION_PROFILE, false, NEEDED },
    { "/questions/origin", COLUMN_TEXT, "Q", AT(question_origin), SECTION_PROFILE, false, MAY_LACK },
    { "/questions/asked_at", COLUMN_F64, "Q", AT(asked_at), SECTION_PROFILE, false, MAY_LACK },
    { "/questions/context", COLUMN_I64, "Q", AT(question_context), SECTION_PROFILE, false, NEEDED },
    { "/gold/answers", COLUMN_TEXT, "Q", AT(gold_answers), SECTION_PROFILE, false, MAY_LACK },
    { "/sampled/text", COLUMN_TEXT, "Q", AT(sampled_text), SECTION_PROFILE, false, MAY_LACK },
    { "/sampled/n_tokens", COLUMN_I32, "Q", AT(sampled_n_tokens), SECTION_PROFILE, false, MAY_LACK },
    { "/answers/text", COLUMN_TEXT, "QV", AT(answer_text), SECTION_PROFILE, false, NEEDED },
    { "/answers/n_tokens", COLUMN_I32, "QV", AT(answer_n_tokens), SECTION_PROFILE, false, NEEDED },
    { "/answers/log_likelihood", COLUMN_F32, "QV", AT(log_likelihood), SECTION_PROFILE, false, MAY_LACK },
    { "/cells/bytes", COLUMN_I64, "CV", AT(cell_bytes), SECTION_PROFILE, true, NEEDED },
    { "/cells/size_frac", COLUMN_F64, "CV", AT(size_frac), SECTION_PROFILE, true, NEEDED },
    { "/cells/keep_frac", COLUMN_F64, "CV", AT(keep_frac), SECTION_PROFILE, false, NEEDED },
    { "/cells/compress_s", COLUMN_F64, "CV", AT(compress_s), SECTION_PROFILE, false, NEEDED },
    { "/cells/decompress_s", COLUMN_F64, "CV", AT(decompress_s), SECTION_PROFILE, true, NEEDED },
    { "/cells/decode_1_s", COLUMN_F64, "CV", AT(decode_s[0]), SECTION_PROFILE, false, MAY_LACK },
    { "/cells/decode_8_s", COLUMN_F64, "CV", AT(decode_s[1]), SECTION_PROFILE, false, MAY_LACK },
    { "/cells/decode_32_s", COLUMN_F64, "CV", AT(decode_s[2]), SECTION_PROFILE, false, MAY_LACK },
    { "/cells/bytes_read", COLUMN_I64, "CV", AT(cell_bytes_read), SECTION_READ, true, NEEDED },
    { "/prefill_curve/context", COLUMN_I64, "P", AT(curve_context), SECTION_CURVE, true, NEEDED },
    { "/prefill_curve/n_tokens", COLUMN_I64, "P", AT(curve_n_tokens), SECTION_CURVE, true, NEEDED },
    { "/prefill_curve/seconds", COLUMN_F64, "P", AT(curve_s), SECTION_CURVE, true, NEEDED },
    { "/answers/similarity", COLUMN_F32, "QV", AT(similarity), SECTION_SCORES, false, NEEDED },
    { "/contexts/unrelated", COLUMN_F64, "C", AT(unrelated), SECTION_SCORES, true, MAY_LACK },
    { "/sampled/similarity", COLUMN_F32, "Q", AT(sampled_similarity), SECTION_SCORES, false, MAY_LACK },
    { "/contexts/same_meaning", COLUMN_F64, "C", AT(same_meaning), SECTION_SCORES, true, MAY_LACK },
    { "/gold/score", COLUMN_F32, "QV", AT(gold_score), SECTION_SCORES, false, MAY_LACK },
    { "/gold/mean", COLUMN_F64, "CV", AT(gold_mean), SECTION_SCORES, false, MAY_LACK },
    { "/answers/facts_kept", COLUMN_F32, "QV", AT(facts_kept), SECTION_SCORES, false, MAY_LACK },
    { "/answers/token_f1", COLUMN_F32, "QV", AT(token_f1), SECTION_SCORES, false, MAY_LACK },
    { "/facts/train", COLUMN_F64, "CV", AT(facts_train), SECTION_SCORES, false, MAY_LACK },
    { "/facts/test", COLUMN_F64, "CV", AT(facts_test), SECTION_SCORES, false, MAY_LACK },
    { "/token_f1/train", COLUMN_F64, "CV", AT(token_f1_train), SECTION_SCORES, false, MAY_LACK },
    { "/token_f1/test", COLUMN_F64, "CV", AT(token_f1_test), SECTION_SCORES, false, MAY_LACK },
    { "/quality/train", COLUMN_F64, "CV", AT(quality_train), SECTION_SCORES, true, NEEDED },
    { "/quality/train_std", COLUMN_F64, "CV", AT(quality_train_std), SECTION_SCORES, false, MAY_LACK },
    { "/quality/train_n", COLUMN_I32, "CV", AT(quality_train_n), SECTION_SCORES, true, MAY_LACK },
    { "/quality/test", COLUMN_F64, "CV", AT(quality_test), SECTION_SCORES, true, NEEDED },
    { "/quality/test_std", COLUMN_F64, "CV", AT(quality_test_std), SECTION_SCORES, false, MAY_LACK },
    { "/quality/test_n", COLUMN_I32, "CV", AT(quality_test_n), SECTION_SCORES, true, MAY_LACK },
    { "/predicted/quality", COLUMN_F64, "CV", AT(predicted_quality), SECTION_BELIEF, true, NEEDED },
    { "/predicted/sd", COLUMN_F32, "CV", AT(predicted_sd), SECTION_BELIEF, true, NEEDED },
    { "/predicted/facts", COLUMN_F32, "CV", AT(predicted_facts), SECTION_BELIEF, true, MAY_LACK },
    { "/predicted/facts_sd", COLUMN_F32, "CV", AT(predicted_facts_sd), SECTION_BELIEF, true, MAY_LACK },
    { "/belief/mean", COLUMN_F64, "V", AT(belief_mean), SECTION_BELIEF, false, NEEDED },
    { "/belief/between", COLUMN_F64, "V", AT(belief_between), SECTION_BELIEF, true, NEEDED },
    { "/belief/within", COLUMN_F64, "V", AT(belief_within), SECTION_BELIEF, true, NEEDED },
    { "/cells/asked", COLUMN_I32, "CV", AT(cell_asked), SECTION_BELIEF, false, NEEDED },
    { "/tiers/name", COLUMN_TEXT, "T", AT(tier_name), SECTION_TIERS, false, NEEDED },
    { "/utility/value", COLUMN_F64, "CVT", AT(utility), SECTION_TIERS, false, NEEDED },
    { "/utility/ttft_s", COLUMN_F64, "CVT", AT(ttft_s), SECTION_TIERS, false, NEEDED },
};

const struct attribute table_attributes[TABLE_ATTRIBUTES] = {
    { "model", AT(model) },     { "model_digest", AT(model_digest) }, { "backend", AT(backend) },
    { "dtype", AT(dtype) },     { "chat_digest", AT(chat_digest) },   { "embedder_digest", AT(embedder_digest) },
    { "lineage", AT(lineage) }, { "measure", AT(measure) },
};
#undef AT

size_t column_size(enum column_type type)
{
    return type == COLUMN_TEXT ? sizeof(char *) : type == COLUMN_I32 || type == COLUMN_F32 ? 4 : 8;
}

/* The members have different pointer types, so they are read and written as bytes. */
void *column_get(const struct table *t, const struct column *c)
{
    void *at;

    memcpy(&at, (const char *)t + c->at, sizeof(at));
    return at;
}

void column_set(struct table *t, const struct column *c, void *at)
{
    memcpy((char *)t + c->at, &at, sizeof(at));
}

char *attribute_get(const struct table *t, const struct attribute *a)
{
    char *at;

    memcpy(&at, (const char *)t + a->at, sizeof(at));
    return at;
}

void attribute_set(struct table *t, const struct attribute *a, char *text)
{
    memcpy((char *)t + a->at, &text, sizeof(text));
}

int table_axis(const struct table *t, char letter)
{
    switch (letter) {
    case 'C': return t->n_contexts;
    case 'V': return t->n_configs;
    case 'Q': return t->n_questions;
    case 'T': return t->n_tiers;
    default: return t->n_points;
    }
}

bool column_count(const struct table *t, const struct column *c, size_t *n)
{
    *n = 1;
    for (const char *letter = c->shape; *letter; letter++)
        if (__builtin_mul_overflow(*n, (size_t)table_axis(t, *letter), n) || *n > COLUMN_LIMIT)
            return false;
    return true;
}

void column_fill_absent(const struct column *c, void *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (c->type == COLUMN_TEXT)
            ((const char **)at)[i] = "";
        else if (c->type == COLUMN_I64)
            ((int64_t *)at)[i] = -1;
        else if (c->type == COLUMN_I32)
            ((int32_t *)at)[i] = -1;
        else if (c->type == COLUMN_F32)
            ((float *)at)[i] = NAN;
        else
            ((double *)at)[i] = c->need == MAY_LACK_0 ? 0 : (double)NAN;
    }
}
