/* requests_marker.c - the special tokens of chat templates, in prompts that a server logged after it applied one. */
#include "logs/requests_internal.h"

#include <string.h>

enum { MARKER_MAX = 40 }; // bytes

static size_t role_length(const char *s, const char *end)
{
    static const char *const roles[] = { "system", "user", "assistant", "model" };

    for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++) {
        size_t n = strlen(roles[i]);
        if ((size_t)(end - s) > n && memcmp(s, roles[i], n) == 0 && (s[n] == '\n' || s[n] == '<'))
            return n;
    }
    return 0;
}

size_t requests_marker(const char *s, const char *end)
{
    static const char *const others[] = { "<s>",    "</s>",    "<bos>",   "<start_of_turn>", "<end_of_turn>",
                                          "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>" };
    size_t n = 0, left = (size_t)(end - s);

    if (*s != '<' && *s != '[')
        return 0;
    if (left > 4 && s[1] == '|') {
        const char *stop = memchr(s + 2, '>', left - 2 < MARKER_MAX ? left - 2 : MARKER_MAX);
        n = stop && stop[-1] == '|' ? (size_t)(stop + 1 - s) : 0;
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(*others) && !n; i++)
        if (left >= strlen(others[i]) && memcmp(s, others[i], strlen(others[i])) == 0)
            n = strlen(others[i]);
    return n ? n + role_length(s + n, end) : 0;
}

bool requests_continues(const struct request *r, size_t from)
{
    const char *end = r->bytes.at + r->bytes.n;

    if (request_role(r, r->message.n - 1) != TURN_PROMPT)
        return r->message.at[r->message.n - 1] > from;
    for (const char *s = r->bytes.at + from; s < end; s++) {
        size_t n = requests_marker(s, end);
        if (n > strlen("user") && (memcmp(s + n - 4, "user", 4) == 0 || strncmp(s, "[INST]", n) == 0))
            return true;
        s += n ? n - 1 : 0;
    }
    return false;
}
