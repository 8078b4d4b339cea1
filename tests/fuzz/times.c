/* times.c - any bytes as times.json: refused with a sentence, or curves whose values are numbers of seconds. */
#include "profiler/score/times.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const int64_t tokens[] = { 1, 1000, INT32_MAX };
    struct times t;
    struct err err;
    struct json *root = json_parse((const char *)data, n, &err);
    int code = root ? times_from_json(&t, root, &err) : err.code;

    json_free(root);
    if (code)
        return 0;
    for (int i = 0; i < 3; i++)
        if (!(times_prefill_s(&t, tokens[i]) >= 0) || !(times_question_s(&t, tokens[i]) >= 0))
            abort();
    times_release(&t);
    return 0;
}
