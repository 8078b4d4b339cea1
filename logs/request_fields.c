/* request_fields.c - the fields of a body: which of them a prompt depends on, and how.
 *
 * The names are those of OpenAI's chat, completions and responses, Anthropic's messages, Ollama, vLLM 0.32, SGLang 0.5,
 * llama-server, TGI, Gemini, and of the rows in which LiteLLM and proxies log them. A name that is in no table is
 * counted, and its request is used.
 */
#include "base/digest.h"
#include "base/parse.h"
#include "logs/request_internal.h"

#include <string.h>

enum { NAME_MAX_BYTES = 40 };

/* Read elsewhere, or without effect on the prompt: words between blanks. */
static const char fine[] =
    /* read */
    " model messages system prompt input instructions inputs text contents systemInstruction system_instruction"
    " input_ids raw date_string"
    /* sampling, and the form of the answer */
    " temperature top_p top_k min_p typical_p tfs_z n best_of seed stop stop_sequences stop_token_ids ignore_eos"
    " max_tokens min_tokens max_completion_tokens max_output_tokens max_new_tokens max_tokens_to_sample n_predict"
    " n_probs n_keep n_indent num_ctx num_predict presence_penalty frequency_penalty repetition_penalty"
    " repeat_penalty repeat_last_n length_penalty logit_bias logprobs top_logprobs prompt_logprobs return_logprob"
    " logprob_start_len top_logprobs_num return_text_in_logprobs return_tokens_as_token_ids return_token_ids echo"
    " stream stream_options response_format format options grammar json_schema output_config output_format"
    " guided_json guided_regex guided_choice guided_grammar guided_decoding_backend guided_whitespace_pattern"
    " structured_outputs structural_tag use_beam_search skip_special_tokens spaces_between_special_tokens"
    " include_stop_str_in_output no_stop_trim regex ebnf allowed_token_ids bad_words bad_words_token_ids"
    " logits_processors custom_logit_processor custom_params sampling_params generationConfig generation_config"
    " safetySettings samplers mirostat mirostat_tau mirostat_eta dynatemp_range dynatemp_exponent xtc_probability"
    " xtc_threshold dry_multiplier dry_base dry_allowed_length dry_penalty_last_n penalize_nl return_tokens"
    " timings_per_token post_sampling_probs return_progress do_sample details decoder_input_details"
    " return_full_text watermark top_n_tokens verbosity modalities audio prediction include truncation"
    " candidateCount"
    /* thinking, which templates begin after the last message; which tool to call */
    " thinking think enable_thinking reasoning reasoning_effort reasoning_format include_reasoning"
    " separate_reasoning stream_reasoning thinking_budget thinking_token_budget thinking_forced_open tool_choice"
    " toolConfig tool_config parallel_tool_calls parse_tool_calls function_call max_tool_calls"
    /* when and where to serve */
    " user metadata store background service_tier priority request_id rid routing_key safety_identifier"
    " prompt_cache_key prompt_cache_retention cache_prompt cache_control id_slot slot_id keep_alive"
    " kv_transfer_params bootstrap_host bootstrap_port bootstrap_room data_parallel_rank return_hidden_states"
    " return_routed_experts session_params session_id vllm_xargs extra_args logits_processor mm_processor_kwargs"
    " media_io_kwargs add_special_tokens add_generation_prompt anthropic_version anthropic_beta betas"
    " inference_geo speed nvext provider route transforms caching drop_params custom_llm_provider litellm_metadata"
    " litellm_call_id proxy_server_request modalities_config t_max_predict_ms t_max_prompt_ms response_fields"
    " lora_name container context_management conversation"
    /* of the row around it */
    " id object created created_at timestamp time ts @timestamp startTime endTime start_time end_time time_iso8601"
    " time_local msec status status_code error response choices usage output path url uri method headers level"
    " logger event host remote_addr duration duration_ms latency latency_ms request_time custom_id log msg message"
    " stream_id api_base prompt_tokens completion_tokens total_tokens spend received_at"
    " ";

/* Objects whose fields are fields of the body. */
static const char inside[] = " chat_template_kwargs extra_body model_parameters optional_params parameters ";

enum { FIELD_SALT = N_REQUEST_FLAWS }; // requests with another value share nothing

static const struct {
    const char *name;
    int what; // a flaw, or FIELD_SALT
} fields[] = {
    { "tools", REQUEST_TOOLS },
    { "functions", REQUEST_TOOLS },
    { "mcp_servers", REQUEST_TOOLS },
    { "web_search_options", REQUEST_TOOLS },
    { "images", REQUEST_MEDIA },
    { "image_data", REQUEST_MEDIA },
    { "video_data", REQUEST_MEDIA },
    { "audio_data", REQUEST_MEDIA },
    { "multi_modal_data", REQUEST_MEDIA },
    { "multimodal_data", REQUEST_MEDIA },
    { "prompt_embeds", REQUEST_MEDIA },
    { "input_embeds", REQUEST_MEDIA },
    { "context", REQUEST_TOKENS },
    { "prompt_token_ids", REQUEST_TOKENS },
    { "chat_template", REQUEST_TEMPLATE },
    { "template", REQUEST_TEMPLATE },
    { "suffix", REQUEST_TEMPLATE },
    { "documents", REQUEST_TEMPLATE },
    { "rag_context", REQUEST_TEMPLATE },
    { "input_prefix", REQUEST_TEMPLATE },
    { "input_suffix", REQUEST_TEMPLATE },
    { "input_extra", REQUEST_TEMPLATE },
    { "continue_final_message", REQUEST_END },
    { "previous_response_id", REQUEST_ELSEWHERE },
    { "previous_input_messages", REQUEST_ELSEWHERE },
    { "cachedContent", REQUEST_ELSEWHERE },
    { "cached_content", REQUEST_ELSEWHERE },
    { "truncate_prompt_tokens", REQUEST_ELSEWHERE },
    { "truncate", REQUEST_ELSEWHERE },
    { "lora_path", REQUEST_ADAPTER },
    { "lora_request", REQUEST_ADAPTER },
    { "lora", REQUEST_ADAPTER },
    { "lora_id", REQUEST_ADAPTER },
    { "adapter_id", REQUEST_ADAPTER },
    { "extra_key", REQUEST_ADAPTER },
    { "cache_salt", FIELD_SALT },
};

bool request_says(const struct json *v)
{
    return json_is_text(v) ? *json_text(v) != '\0' : json_true(v) || json_count(v) > 0 || json_is_number(v);
}

/* A name that may stand in a message: a plain word. */
static bool is_plain(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n <= NAME_MAX_BYTES &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == n;
}

static int note_unknown(struct request_line *l, const char *name, struct err *err)
{
    name = is_plain(name) ? name : "";
    int i = map_find(&l->unknown, name, strlen(name));

    if (i < 0 && l->unknown.n < REQUEST_UNKNOWN_MAX - 1)
        i = map_add(&l->unknown, name, strlen(name), NULL);
    if (i == MAP_NOMEM)
        return err_nomem(err);
    l->n_unknown[i < 0 ? REQUEST_UNKNOWN_MAX - 1 : i]++;
    return 0;
}

/* What keeps the caches of requests apart: its digest alone is kept. */
static void set_apart(struct request *r, const struct json *field)
{
    struct buf value = { 0 };

    json_print(&value, field);
    r->apart = digest_xxh3_seeded(buf_str(&value), value.n,
                                  r->apart ^ digest_xxh3(json_name(field), strlen(json_name(field))));
    buf_release(&value);
}

/* One field. Returns its flaw, N_REQUEST_FLAWS, or an error. */
static int read_field(const struct request_finding *f, const struct json *field, struct err *err)
{
    struct request *r = &f->l->request;
    const char *name = json_name(field);

    if (strcmp(name, "add_generation_prompt") == 0 && json_is_bool(field) && !json_true(field))
        return REQUEST_END;
    if (!request_says(field) || text_among(fine, name))
        return N_REQUEST_FLAWS;
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        if (strcmp(fields[i].name, name) != 0)
            continue;
        if (fields[i].what == REQUEST_TOKENS && !json_is_array(field))
            return N_REQUEST_FLAWS;
        if (fields[i].what == FIELD_SALT || (f->l->bytes_suffice && fields[i].what == REQUEST_ADAPTER))
            set_apart(r, field);
        r->salted |= fields[i].what == FIELD_SALT;
        return fields[i].what;
    }
    return f->of_gateway || f->below || note_unknown(f->l, name, err) == 0 ? N_REQUEST_FLAWS : err->code;
}

int request_read_fields(const struct request_finding *f, const struct json *row, struct err *err)
{
    int flaw = N_REQUEST_FLAWS;

    for (const struct json *field = json_first(row); field && flaw >= 0; field = json_next(field)) {
        int code = json_is_object(field) && text_among(inside, json_name(field)) ? request_read_fields(f, field, err)
                                                                                 : read_field(f, field, err);
        if (code >= 0 && code < N_REQUEST_FLAWS && f->l->bytes_suffice && code != REQUEST_ELSEWHERE)
            code = code == REQUEST_ADAPTER || code == REQUEST_END ? N_REQUEST_FLAWS
                                                                  : request_add_front(f, field, code, err);
        flaw = code < 0 || flaw == N_REQUEST_FLAWS ? code : flaw;
    }
    return flaw;
}
