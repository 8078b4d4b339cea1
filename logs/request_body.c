/* request_body.c - the body of a request in the form of any API, as messages or as a prompt. */
#include "logs/request_internal.h"

#include <string.h>

static bool has_any(const struct json *row, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (request_says(json_get(row, names[i])))
            return true;
    return false;
}

/* ---- OpenAI's chat, Anthropic, Ollama ------------------------------------- */

/* Anthropic's texts of `system` are joined without anything between. */
static int add_system(const struct request_finding *f, const struct json *system, struct err *err)
{
    const struct request_message m = { "system", system, NULL, "" };

    return request_says(system) ? request_add_message(f, &m, err) : N_REQUEST_FLAWS;
}

int request_read_chat(const struct request_finding *f, const struct json *row, const struct json *messages,
                      struct err *err)
{
    const char *date = json_text(json_get(json_get(row, "chat_template_kwargs"), "date_string"));
    int flaw = request_read_fields(f, row, err);

    if (flaw == N_REQUEST_FLAWS && date && f->l->date && strcmp(date, f->l->date) != 0)
        flaw = REQUEST_DATE;
    if (flaw == N_REQUEST_FLAWS)
        flaw = add_system(f, json_get(row, "system"), err);
    for (const struct json *m = json_first(messages); m && flaw == N_REQUEST_FLAWS; m = json_next(m)) {
        const struct request_message one = { json_text(json_get(m, "role")), json_get(m, "content"), m, "\n" };
        flaw = request_add_message(f, &one, err);
    }
    return request_finish(f, flaw, err);
}

/* `messages` may be a text with the list in it, as LiteLLM's database keeps it. */
static int read_messages(const struct request_finding *f, const struct json *row, const struct json *messages,
                         struct err *err)
{
    if (!json_text(messages))
        return request_read_chat(f, row, messages, err);
    struct json *list = json_parse(json_text(messages), strlen(json_text(messages)), err);
    int code = json_is_array(list) ? request_read_chat(f, row, list, err) : 0;
    json_free(list);
    return code;
}

/* Does Ollama apply the chat template? */
static bool is_generate(const struct request_finding *f, const struct json *row)
{
    return !json_true(json_get(row, "raw")) &&
           (f->of_generate || request_says(json_get(row, "system")) || json_is_object(json_get(row, "options")) ||
            json_get(row, "keep_alive") || json_is_bool(json_get(row, "raw")));
}

static int read_prompt(const struct request_finding *f, const struct json *row, const struct json *prompt,
                       struct err *err)
{
    const struct request_message user = { "user", prompt, NULL, "" };
    int flaw = request_read_fields(f, row, err);

    if (flaw != N_REQUEST_FLAWS)
        return request_finish(f, flaw, err);
    if (!json_text(prompt) || !is_generate(f, row))
        return request_read_prompts(f, prompt, err);
    flaw = add_system(f, json_get(row, "system"), err);
    return request_finish(f, flaw == N_REQUEST_FLAWS ? request_add_message(f, &user, err) : flaw, err);
}

/* ---- OpenAI's responses --------------------------------------------------- */

/* Embeddings, moderations and speech have an `input`, too. */
static bool is_responses(const struct request_finding *f, const struct json *row)
{
    static const char *const names[] = { "instructions",   "previous_response_id",
                                         "conversation",   "store",
                                         "reasoning",      "max_output_tokens",
                                         "max_tool_calls", "tools",
                                         "include",        "stream",
                                         "temperature",    "top_p",
                                         "background" };
    const struct json *input = json_get(row, "input"), *first = json_first(input);

    if (json_get(row, "voice"))
        return false;
    if (json_is_array(input))
        return json_text(json_get(first, "role")) || json_text(json_get(first, "type"));
    return json_text(input) && (f->of_responses || has_any(row, names, sizeof(names) / sizeof(*names)));
}

static int read_responses(const struct request_finding *f, const struct json *row, struct err *err)
{
    const struct json *input = json_get(row, "input");
    const struct request_message asked = { "user", input, NULL, "" };
    int flaw = request_read_fields(f, row, err);

    if (flaw == N_REQUEST_FLAWS &&
        (request_says(json_get(row, "prompt")) || request_says(json_get(row, "conversation"))))
        flaw = REQUEST_ELSEWHERE;
    if (flaw == N_REQUEST_FLAWS)
        flaw = add_system(f, json_get(row, "instructions"), err);
    if (flaw == N_REQUEST_FLAWS && json_text(input))
        flaw = request_add_message(f, &asked, err);
    for (const struct json *m = json_first(input); m && flaw == N_REQUEST_FLAWS; m = json_next(m)) {
        const char *type = json_text(json_get(m, "type"));
        const struct request_message one = { json_text(json_get(m, "role")), json_get(m, "content"), m, "\n" };
        flaw = type && strcmp(type, "message") != 0 ? request_add_item(f, m, err) : request_add_message(f, &one, err);
    }
    return request_finish(f, flaw, err);
}

/* ---- Gemini --------------------------------------------------------------- */

static int read_gemini(const struct request_finding *f, const struct json *row, struct err *err)
{
    const struct json *system = json_get(row, "systemInstruction");
    int flaw = request_read_fields(f, row, err);

    system = system ? system : json_get(row, "system_instruction");
    if (flaw == N_REQUEST_FLAWS)
        flaw = add_system(f, json_is_object(system) ? json_get(system, "parts") : system, err);
    for (const struct json *m = json_first(json_get(row, "contents")); m && flaw == N_REQUEST_FLAWS; m = json_next(m)) {
        const char *role = json_text(json_get(m, "role"));
        const struct request_message one = { role ? role : "user", json_get(m, "parts"), NULL, "\n" };
        flaw = request_add_message(f, &one, err);
    }
    return request_finish(f, flaw, err);
}

/* ---- any ------------------------------------------------------------------ */

static bool is_list(const struct json *v)
{
    return json_is_array(v) || (json_text(v) && json_text(v)[strspn(json_text(v), " \n")] == '[');
}

static bool is_prompt(const struct json *v)
{
    return json_is_array(v) || json_text(v) || json_get(v, "prompt_string");
}

bool request_read_body(const struct request_finding *f, const struct json *row, struct err *err)
{
    const struct json *messages = json_get(row, "messages"), *prompt = json_get(row, "prompt");
    const struct json *text = json_get(row, "text"), *inputs = json_get(row, "inputs");

    err->code = 0;
    request_begin(&f->l->request);
    if (is_list(messages))
        err->code = read_messages(f, row, messages, err);
    else if (is_prompt(prompt))
        err->code = read_prompt(f, row, prompt, err);
    else if (is_responses(f, row))
        err->code = read_responses(f, row, err);
    else if (json_get(json_first(json_get(row, "contents")), "parts"))
        err->code = read_gemini(f, row, err);
    else if (json_text(inputs) && json_is_object(json_get(row, "parameters")))
        err->code = read_prompt(f, row, inputs, err);
    else if (is_prompt(text) && json_get(row, "sampling_params"))
        err->code = read_prompt(f, row, text, err);
    else if (f->l->bytes_suffice && json_is_array(json_get(row, "input_ids")) && json_get(row, "sampling_params"))
        err->code = read_prompt(f, row, json_get(row, "input_ids"), err);
    else
        return false;
    return true;
}
