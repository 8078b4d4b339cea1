/* fields.c - one message per kind of wrong field. */
#include "formats/fields.h"

#include "base/digest.h"

#include <math.h>
#include <string.h>

static const int64_t bytes_max = (int64_t)1 << 53;

int field_check_real(const char *field, double v, double min, struct err *err)
{
    if (!isfinite(v) || v < min)
        return err_set(err, ERR_FORMAT, "field '%s' is %s", field, isfinite(v) ? "below zero" : "not a number");
    return 0;
}

int field_check_bytes(const char *field, int64_t v, struct err *err)
{
    if (v < 0 || v > bytes_max)
        return err_set(err, ERR_FORMAT, "field '%s' is %s", field, v < 0 ? "below zero" : "above 2^53");
    return 0;
}

int field_check_digest(const char *field, const char *hex, struct err *err)
{
    if (!hex || !digest_is_hex(hex))
        return err_set(err, ERR_FORMAT, "field '%s' is not 64 lower-case hex digits", field);
    return 0;
}

int field_check_tokens(const char *field, int64_t n, struct err *err)
{
    if (n < 1 || n > INT32_MAX)
        return err_set(err, ERR_FORMAT, "field '%s' is out of range", field);
    return 0;
}
