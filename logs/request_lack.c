/* request_lack.c - recognises the lines of servers and proxies that leave prompts out, so that the user hears which
 * setting logs them. The shapes are those of vLLM 0.6 to 0.32, SGLang 0.5, LiteLLM 1.109, uvicorn, nginx and Apache.
 */
#include "base/json.h"
#include "logs/request.h"

#include <ctype.h>
#include <string.h>

enum {
    LOOKED_AT = 512, // bytes of a line
    SAME_LENGTH = 4, // prompts of the same length that are no coincidence
};

static const char *const whats[] = {
#define X(name, what, remedy) what,
    REQUEST_LACKS(X)
#undef X
};

static const char *const remedies[] = {
#define X(name, what, remedy) remedy,
    REQUEST_LACKS(X)
#undef X
};

const char *request_lack_what(enum request_lack lack)
{
    return whats[lack];
}

const char *request_lack_remedy(enum request_lack lack)
{
    return remedies[lack];
}

/* "INFO 11-22 05:58:00 [", as vLLM begins its lines. */
static bool is_vllm(const char *text)
{
    static const char *const levels[] = { "DEBUG ", "INFO ", "WARNING ", "ERROR " }, shape[] = "00-00 00:00:00 [";

    for (size_t l = 0; l < sizeof(levels) / sizeof(*levels); l++) {
        const char *at = strstr(text, levels[l]);
        size_t i = 0;
        for (at = at ? at + strlen(levels[l]) : ""; shape[i]; i++)
            if (shape[i] == '0' ? !isdigit((unsigned char)at[i]) : at[i] != shape[i])
                break;
        if (!shape[i])
            return true;
    }
    return false;
}

/* Words of lines that only one program writes. */
void request_note_writer(struct request_line *l, const char *line)
{
    static const struct {
        enum request_writer writer;
        const char *mark;
    } marks[] = { { WRITER_VLLM, " JSON body: " },
                  { WRITER_VLLM, "params: SamplingParams(" },
                  { WRITER_VLLM, "prompt_token_ids" },
                  { WRITER_SGLANG, "Receive: obj=" },
                  { WRITER_SGLANG, " batch, #" },
                  { WRITER_SGLANG, "\"event\":\"request." },
                  { WRITER_SGLANG, "\"event\": \"request." },
                  { WRITER_LLAMA, "srv  " },
                  { WRITER_LLAMA, "slot  " },
                  { WRITER_LITELLM, "LiteLLM" },
                  { WRITER_LITELLM, "\"call_type\":" },
                  { WRITER_OLLAMA, "[GIN]" },
                  { WRITER_OLLAMA, "level=INFO source=" } };
    char text[LOOKED_AT + 1];
    size_t n = strnlen(line, LOOKED_AT);

    memcpy(text, line, n);
    text[n] = '\0';
    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
        if (strstr(text, marks[i].mark)) {
            l->writers[marks[i].writer]++;
            return;
        }
    l->writers[WRITER_VLLM] += is_vllm(text);
}

const char *request_writer(const struct request_line *l)
{
    static const char *const names[] = {
#define X(name, text) text,
        REQUEST_WRITERS(X)
#undef X
    };
    int most = 0;

    for (int i = 1; i < N_REQUEST_WRITERS; i++)
        most = l->writers[i] > l->writers[most] ? i : most;
    return l->writers[most] ? names[most] : NULL;
}

void request_note_text(struct request_log *log, const char *line)
{
    char text[LOOKED_AT + 1];
    size_t n = strnlen(line, LOOKED_AT);

    memcpy(text, line, n);
    text[n] = '\0';
    const char *post = strstr(text, "\"POST /");
    if (strstr(text, "prompt: None, prompt_token_ids: ["))
        log->lacks[LACK_VLLM_IDS]++;
    else if (is_vllm(text))
        log->lacks[LACK_VLLM]++;
    else if (strstr(text, "Receive: obj=") || strstr(text, "Receive OpenAI: obj=") || strstr(text, " batch, #") ||
             strstr(text, " batch. #"))
        log->lacks[LACK_SGLANG]++;
    else if (post && strstr(post, " HTTP/"))
        log->lacks[strstr(text, "INFO: ") ? LACK_API : LACK_NGINX]++;
    else if (strstr(text, "LiteLLM"))
        log->lacks[LACK_LITELLM]++;
}

void request_note_row(struct request_log *log, const struct json *row)
{
    const char *event = json_text(json_get(row, "event")), *request = json_text(json_get(row, "request"));

    if (event && strncmp(event, "request.", strlen("request.")) == 0)
        log->lacks[LACK_SGLANG]++;
    else if (json_text(json_get(row, "call_type")))
        log->lacks[LACK_LITELLM]++;
    else if (json_get(row, "status") && ((request && strncmp(request, "POST /", strlen("POST /")) == 0) ||
                                         json_get(row, "request_uri") || json_get(row, "uri")))
        log->lacks[LACK_NGINX]++;
}

/* Do half of vLLM's prompts have the length of the longest, without a template's end? */
static bool looks_cut(const struct request_log *log)
{
    return log->ends_differ && log->n_longest >= SAME_LENGTH && log->n_longest * 2 >= log->n_vllm;
}

enum request_lack request_log_lack(const struct request_log *log)
{
    enum request_lack most = LACK_API;

    if (log->lacks[LACK_VLLM_REST] || looks_cut(log))
        return LACK_VLLM_REST;
    if (log->sglang_cuts)
        return LACK_SGLANG;
    if (log->lacks[LACK_LITELLM_REST])
        return LACK_LITELLM_REST;
    if (log->n_prompts)
        return N_REQUEST_LACKS;
    if (log->lacks[LACK_VLLM_IDS]) /* beside as many lines with parameters */
        return LACK_VLLM_IDS;
    for (int i = 0; i < LACK_API; i++)
        if (log->lacks[i] > (most == LACK_API ? 0 : log->lacks[most]))
            most = (enum request_lack)i;
    return log->lacks[most] ? most : N_REQUEST_LACKS;
}
