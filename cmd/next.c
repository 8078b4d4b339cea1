/* next.c - words of a command line: quoted for a shell, and found again in a lineage, where operands come last
 * (base/opt.h). */
#include "cmd/next.h"

#include "base/buf.h"
#include "base/log.h"

#include <stdarg.h>
#include <string.h>

enum { WORDS = 32 };

void next_words(const char *const *word)
{
    struct buf text = { 0 };
    bool readable = true;

    for (; *word; word++) {
        readable &= strcmp(*word, "-") != 0;
        if (**word) {
            buf_adds(&text, text.n ? " " : "");
            buf_add_word(&text, *word);
        }
    }
    if (readable && !buf_failed(&text))
        log_info("next: %s", buf_str(&text));
    buf_release(&text);
}

void next_say(const char *word, ...)
{
    const char *all[WORDS + 1];
    va_list words;
    int n = 0;

    va_start(words, word);
    for (; word && n < WORDS; word = va_arg(words, const char *))
        all[n++] = word;
    va_end(words);
    all[n] = NULL;
    next_words(all);
}

/* The arguments of the first command of that name, the last tool first. */
static const struct json *find_args(const struct json *made, const char *tool, int depth)
{
    const char *name = json_text(json_get(made, "tool"));
    const struct json *found = name && strcmp(name, tool) == 0 ? json_get(made, "args") : NULL;

    for (const struct json *f = json_first(json_get(made, "from")); f && !found && depth < 32; f = json_next(f))
        found = find_args(f, tool, depth + 1);
    return found;
}

const char *next_operand(const struct json *made, const char *tool, int from_end)
{
    const struct json *args = find_args(made, tool, 0), *a = json_first(args);

    for (int i = json_count(args) - 1 - from_end; i > 0 && a; i--)
        a = json_next(a);
    return json_text(a) ? json_text(a) : "";
}

const char *next_option(const struct json *made, const char *tool, const char *option, char letter)
{
    size_t n = strlen(option);

    for (const struct json *a = json_first(find_args(made, tool, 0)); a; a = json_next(a)) {
        const char *text = json_text(a), *after = json_text(json_next(a));
        if (!text || text[0] != '-')
            continue;
        if (text[1] == letter)
            return text[2] ? text + 2 : after ? after : "";
        if (text[1] == '-' && strncmp(text + 2, option, n) == 0 && (text[2 + n] == '=' || !text[2 + n]))
            return text[2 + n] ? text + 3 + n : after ? after : "";
    }
    return "";
}
