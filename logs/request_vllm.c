/* request_vllm.c - prompts as vLLM writes them into a line: Python's repr() of a text. */
#include "base/digest.h"
#include "base/utf8.h"
#include "logs/request_internal.h"

#include <ctype.h>
#include <string.h>

static int hex_of(const char *s, int n)
{
    int v = 0;

    for (int i = 0; i < n; i++) {
        if (!isxdigit((unsigned char)s[i]))
            return -1;
        v = v * 16 + (isdigit((unsigned char)s[i]) ? s[i] - '0' : (s[i] | 32) - 'a' + 10);
    }
    return v;
}

/* The character of an escape of Python's repr(); moves *s past it. -1: not an escape. */
static int unescape(const char **s)
{
    static const char names[] = "ntr\\'\"", values[] = "\n\t\r\\'\"";
    const char *at = *s, *name = *at ? strchr(names, *at) : NULL;
    int n = *at == 'x' ? 2 : *at == 'u' ? 4 : *at == 'U' ? 8 : 0;

    if (name) {
        *s = at + 1;
        return values[name - names];
    }
    int point = n ? hex_of(at + 1, n) : -1;
    *s = at + 1 + n;
    return point > 0 && point <= 0x10ffff && !(point >= 0xd800 && point < 0xe000) ? point : -1;
}

/* Takes a text as Python's repr() writes it. Returns what follows it; NULL: its end is missing. */
static const char *take_repr(struct buf *out, const char *s)
{
    char quote = *s++, bytes[4];

    while (*s && *s != quote) {
        if (*s != '\\') {
            size_t n = strcspn(s, quote == '"' ? "\\\"" : "\\'");
            buf_add(out, s, n);
            s += n;
            continue;
        }
        s++;
        int point = unescape(&s);
        if (point < 0)
            return NULL;
        buf_add(out, bytes, (size_t)utf8_encode((uint32_t)point, bytes));
    }
    return *s == quote ? s + 1 : NULL;
}

/* Notes how long vLLM's prompts are: --max-log-len gives many the same length, and ends them anywhere. */
static void note_length(struct request_log *log, const struct buf *text)
{
    size_t n = utf8_count(text->at, text->n);
    char end = text->at[text->n - 1];

    log->n_vllm++;
    if (n > log->longest) {
        log->longest = n;
        log->longest_end = end;
        log->ends_differ = false;
        log->n_longest = 0;
    }
    log->n_longest += n == log->longest;
    log->ends_differ |= n == log->longest && end != log->longest_end;
}

int request_give_vllm(const struct request_finding *f, const char *quoted, struct err *err)
{
    struct request *r = &f->l->request;
    struct buf text = { 0 };
    int code = 0;

    request_begin(r);
    const char *rest = take_repr(&text, quoted), *adapter = rest ? strstr(rest, "lora_request: LoRARequest(") : NULL;
    if (adapter && f->l->bytes_suffice)
        r->apart = digest_xxh3(adapter, strcspn(adapter, ")"));
    if (!rest)
        code = request_flawed(f, REQUEST_CUT);
    else if (adapter && !f->l->bytes_suffice)
        code = request_flawed(f, REQUEST_ADAPTER);
    else if (buf_failed(&text))
        code = err_nomem(err);
    else if (text.n > 0) {
        note_length(&f->l->log, &text);
        code = request_give_prompt(f, buf_str(&text), err);
    }
    buf_release(&text);
    return code;
}
