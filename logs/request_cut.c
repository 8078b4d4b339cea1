/* request_cut.c - texts that a logger cut short or put another text in place of. */
#include "base/utf8.h"
#include "logs/request_internal.h"

#include <ctype.h>
#include <string.h>

enum {
    SGLANG_HALF = 1024, // characters at both ends of a text that SGLang cut, with three dots between
    NOTE_MAX = 48,      // bytes of a note in brackets at the end of a text
};

/* 1024 characters, three dots, 1024 characters? */
static bool has_dots_within(const char *text, size_t n)
{
    size_t at = 0;

    if (n < 2 * SGLANG_HALF + 3)
        return false;
    for (int chars = 0; at < n && chars <= SGLANG_HALF; at++)
        chars += ((unsigned char)text[at] & 0xc0) != 0x80;
    at -= at < n;
    return n - at >= 3 && memcmp(text + at, "...", 3) == 0 && utf8_count(text + at + 3, n - at - 3) == SGLANG_HALF;
}

/* Does a note say that a text goes on: "truncated", or a number of characters? */
static bool says_cut(const char *note)
{
    const char *digits = note + strcspn(note, "0123456789");
    const char *unit = digits + strspn(digits, "0123456789,");

    unit += strspn(unit, " ");
    unit += strncmp(unit, "more ", 5) == 0 ? 5 : 0;
    return strstr(note, "truncated") || (*digits && (strncmp(unit, "char", 4) == 0 || strncmp(unit, "bytes", 5) == 0));
}

/* Does a text end with dots and a note in brackets? "... (1234 chars)", "...[truncated]", "... (truncated 12 bytes)" */
static bool ends_with_note(const char *text, size_t n)
{
    char note[NOTE_MAX + 1];
    size_t begin, k = 0;

    while (n > 0 && isspace((unsigned char)text[n - 1]))
        n--;
    if (n == 0 || !strchr(")]>}", text[n - 1]))
        return false;
    for (begin = n - 1; begin > 0 && n - begin < NOTE_MAX && !strchr("([<{", text[begin]);)
        begin--;
    if (!strchr("([<{", text[begin]))
        return false;
    for (size_t i = begin; i < n; i++)
        note[k++] = (char)tolower((unsigned char)text[i]);
    note[k] = '\0';
    while (begin > 0 && text[begin - 1] == ' ')
        begin--;
    bool dots =
        begin >= 3 && (memcmp(text + begin - 3, "...", 3) == 0 || memcmp(text + begin - 3, "\xe2\x80\xa6", 3) == 0);
    return dots && says_cut(note);
}

bool request_is_cut(const struct request_finding *f, const char *text, size_t n)
{
    static const char litellm[] = "litellm_truncated", redacted[] = "redacted-by-litellm";
    static const char *const within[] = { "<Truncated in logs>", "[TRUNCATED]" };
    struct request_log *log = &f->l->log;
    bool cut = ends_with_note(text, n);

    if (n == sizeof(redacted) - 1 && memcmp(text, redacted, n) == 0) {
        log->lacks[LACK_LITELLM]++;
        return true;
    }
    if (memmem(text, n, litellm, sizeof(litellm) - 1)) {
        log->lacks[LACK_LITELLM_REST]++;
        return true;
    }
    for (size_t i = 0; i < sizeof(within) / sizeof(*within); i++)
        cut |= memmem(text, n, within[i], strlen(within[i])) != NULL;
    if (f->of_sglang && has_dots_within(text, n))
        cut = log->sglang_cuts = true;
    return cut;
}
