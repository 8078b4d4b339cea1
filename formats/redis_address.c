/* redis_address.c - redis:// read strictly: unknown forms are refused, not guessed. */
#include "formats/redis_address.h"

#include "base/parse.h"

#include <string.h>

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
static const char address[] = "0123456789abcdefABCDEF:.";
enum { PORT_DEFAULT = 6379, PORT_MAX = 65535, DATABASE_MAX = 65535, DIGITS = 8 };

/* A number of n digits, from `min` to `max`. */
static bool read_number(const char *text, size_t n, int min, int max, int *out)
{
    char digits[DIGITS];
    int64_t v;

    if (n == 0 || n >= sizeof(digits))
        return false;
    memcpy(digits, text, n);
    digits[n] = '\0';
    if (strspn(digits, "0123456789") != n || !parse_int(digits, &v) || v < min || v > max)
        return false;
    *out = (int)v;
    return true;
}

bool redis_address_host(struct redis_address *a, const char *text, size_t n)
{
    bool bracket = n > 0 && *text == '[';
    size_t skip = bracket ? 1 : 0, host = 0;

    while (skip + host < n && strchr(bracket ? address : letters, text[skip + host]) && text[skip + host])
        host++;
    if (host == 0 || host >= sizeof(a->host) || (bracket && (skip + host >= n || text[skip + host] != ']')))
        return false;
    memcpy(a->host, text + skip, host);
    a->host[host] = '\0';
    size_t at = host + 2 * skip;
    a->port = PORT_DEFAULT;
    return at == n || (text[at] == ':' && read_number(text + at + 1, n - at - 1, 1, PORT_MAX, &a->port));
}

static const char *const scheme[] = { "redis://", "rediss://" }; // without and with TLS

bool redis_address_is(const char *uri)
{
    return strncmp(uri, scheme[0], strlen(scheme[0])) == 0 || strncmp(uri, scheme[1], strlen(scheme[1])) == 0;
}

int redis_address_parse(struct redis_address *a, const char *uri, struct err *err)
{
    *a = (struct redis_address){ .port = PORT_DEFAULT };
    a->tls = strncmp(uri, scheme[1], strlen(scheme[1])) == 0;
    if (strncmp(uri, scheme[a->tls], strlen(scheme[a->tls])) != 0)
        return err_set(err, ERR_FORMAT, "uri '%.200s' does not begin with redis:// or rediss://", uri);
    if (strchr(uri, '@'))
        return err_set(err, ERR_FORMAT,
                       "the uri has a user or password, which every manifest would repeat: give them in the "
                       "environment or in a file (docs/serving.md)");
    const char *host = uri + strlen(scheme[a->tls]), *slash = strchr(host, '/');
    size_t n = slash ? (size_t)(slash - host) : strlen(host);
    bool known = redis_address_host(a, host, n);
    if (known && slash && slash[1])
        known = read_number(slash + 1, strlen(slash + 1), 0, DATABASE_MAX, &a->database);
    return known ? 0 : err_set(err, ERR_FORMAT, "uri '%.200s' is not %sHOST[:PORT][/DATABASE]", uri, scheme[a->tls]);
}
