/* The list of datasets in the order they are written, and access to the member of struct table that holds each of them.
 */
#include "profiler/table_column.h"

#include <string.h>

#define AT(member) offsetof(struct table, member)
const struct column table_columns[TABLE_COLUMNS] = {
    { "/contexts/id", COLUMN_TEXT, "C", AT(context_id), PART_PROFILE, true, false },
    { "/contexts/dataset", COLUMN_TEXT, "C", AT(context_dataset), PART_PROFILE, false, false },
    { "/contexts/token_digest", COLUMN_TEXT, "C", AT(context_token_digest), PART_PROFILE, true, false },
    { "/contexts/n_tokens", COLUMN_I64, "C", AT(n_tokens), PART_PROFILE, true, false },
    { "/contexts/kv_bytes", COLUMN_I64, "C", AT(kv_bytes), PART_PROFILE, true, false },
    { "/contexts/prefill_s", COLUMN_F64, "C", AT(prefill_s), PART_PROFILE, true, false },
    { "/contexts/question_s", COLUMN_F64, "C", AT(question_s), PART_PROFILE, true, true },
    { "/configs/name", COLUMN_TEXT, "V", AT(config_name), PART_PROFILE, true, false },
    { "/questions/id", COLUMN_TEXT, "Q", AT(question_id), PART_PROFILE, false, false },
    { "/questions/text", COLUMN_TEXT, "Q", AT(question_text), PART_PROFILE, false, false },
    { "/questions/split", COLUMN_TEXT, "Q", AT(question_split), PART_PROFILE, false, false },
    { "/questions/context", COLUMN_I64, "Q", AT(question_context), PART_PROFILE, false, false },
    { "/answers/text", COLUMN_TEXT, "QV", AT(answer_text), PART_PROFILE, false, false },
    { "/answers/n_tokens", COLUMN_I32, "QV", AT(answer_n_tokens), PART_PROFILE, false, false },
    { "/cells/bytes", COLUMN_I64, "CV", AT(cell_bytes), PART_PROFILE, true, false },
    { "/cells/size_frac", COLUMN_F64, "CV", AT(size_frac), PART_PROFILE, true, false },
    { "/cells/keep_frac", COLUMN_F64, "CV", AT(keep_frac), PART_PROFILE, false, false },
    { "/cells/compress_s", COLUMN_F64, "CV", AT(compress_s), PART_PROFILE, false, false },
    { "/cells/decompress_s", COLUMN_F64, "CV", AT(decompress_s), PART_PROFILE, true, false },
    { "/answers/similarity", COLUMN_F32, "QV", AT(similarity), PART_SCORES, false, false },
    { "/quality/train", COLUMN_F64, "CV", AT(quality_train), PART_SCORES, true, false },
    { "/quality/test", COLUMN_F64, "CV", AT(quality_test), PART_SCORES, true, false },
    { "/tiers/name", COLUMN_TEXT, "T", AT(tier_name), PART_TIERS, false, false },
    { "/utility/value", COLUMN_F64, "CVT", AT(utility), PART_TIERS, false, false },
    { "/utility/ttft_s", COLUMN_F64, "CVT", AT(ttft_s), PART_TIERS, false, false },
};

const struct attribute table_attributes[TABLE_ATTRIBUTES] = {
    { "model", AT(model) }, { "model_digest", AT(model_digest) },       { "backend", AT(backend) },
    { "dtype", AT(dtype) }, { "embedder_digest", AT(embedder_digest) }, { "lineage", AT(lineage) },
};
#undef AT

size_t column_size(enum column_type type)
{
    return type == COLUMN_TEXT ? sizeof(char *) : type == COLUMN_I32 || type == COLUMN_F32 ? 4 : 8;
}

/* The members have different pointer types; all are pointers to data, read and written as bytes. */
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
    return letter == 'C' ? t->n_contexts : letter == 'V' ? t->n_configs : letter == 'Q' ? t->n_questions : t->n_tiers;
}

bool column_count(const struct table *t, const struct column *c, size_t *n)
{
    *n = 1;
    for (const char *letter = c->shape; *letter; letter++)
        if (__builtin_mul_overflow(*n, (size_t)table_axis(t, *letter), n) || *n > COLUMN_MAX)
            return false;
    return true;
}
