/* payloads.c - payloads of one context under many configs, from one prefill, for the scripts beside it.
 *
 *     payloads MODEL CONFIGS DIR <IDS       IDS: token ids, blanks between; writes DIR/0.safetensors (`none`), DIR/1...
 */
#include "base/buf.h"
#include "base/file.h"
#include "engine/transformer/engine.h"
#include "kernels/pool.h"
#include "variants/packed_payload.h"
#include "variants/sizes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_ids(struct prefill *want, struct err *err)
{
    struct buf text = { 0 };

    if (file_read(&text, "-", 64 << 20, err))
        return err->code;
    int32_t *ids = calloc(text.n + 1, sizeof(*ids));
    char *at = text.at, *end;
    if (!ids)
        return err_nomem(err);
    for (long id = strtol(at, &end, 10); end != at; id = strtol(at = end, &end, 10))
        ids[want->n++] = (int32_t)id;
    want->ids = ids;
    buf_release(&text);
    return 0;
}

static int write_payload(struct compressor *c, const struct config *config, const char *path, const int32_t *ids,
                         struct err *err)
{
    static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
    struct variant v;

    int code = compressor_variant(c, config, VARIANT_PAYLOAD, &v, err);
    if (!code) {
        code = packed_payload_write(
            path, &v, &(struct payload_key){ .model_digest = zeros, .token_digest = zeros, .ids = ids }, NULL, err);
        fprintf(stderr, "%s: %.3f s to compress, %.3f s to unpack\n", config->name, v.compress_s, v.decompress_s);
        variant_release(&v);
    }
    return code;
}

/* Writes the payloads of all configs, one after the other. */
static int write_all(struct session *s, const struct prefill *want, const struct engine_work *work, const char *dir,
                     struct err *err)
{
    const struct kv_full *full = session_full(s);
    struct compressor *c = compressor_new(full, work->config, work->n_configs, err);
    size_t mark = pool_mark(full->pool);
    int code = c ? 0 : err->code;

    for (int i = 0; i < work->n_configs && !code; i++) {
        struct buf path = { 0 };
        buf_printf(&path, "%s/%d.safetensors", dir, i);
        code = write_payload(c, work->config[i], buf_str(&path), want->ids, err);
        buf_release(&path);
        pool_reset(full->pool, mark);
    }
    compressor_free(c);
    return code;
}

static int run(char **arg, struct err *err)
{
    enum { CONFIGS = 64 };
    struct engine *e = engine_open(&(struct engine_options){ .model = arg[1], .backend = "auto" }, err);
    const struct config *list[CONFIGS];
    struct config *configs = NULL;
    struct prefill want = { 0 };
    double seconds;
    int n = 0, code = e ? config_list(&configs, &n, arg[2], err) : err->code;

    if (!code && n > CONFIGS)
        code = err_set(err, ERR_USAGE, "more than %d configs", CONFIGS);
    for (int i = 0; i < n && !code; i++)
        list[i] = &configs[i];
    if (!code)
        code = read_ids(&want, err);
    if (code)
        return code;
    configs_need(list, n, &want.needs, &want.window);
    const struct engine_work work = { .n_tokens = want.n, .config = list, .n_configs = n };
    struct session *s = engine_start(e, &work, 1, 0, err);
    code = s ? session_prefill(s, &want, &seconds, err) : err->code;
    if (!code)
        code = session_repeat(s, &want, err);
    if (!code)
        code = write_all(s, &want, &work, arg[3], err);
    session_free(s);
    engine_close(e);
    free((void *)(uintptr_t)want.ids);
    free(configs);
    return code;
}

int main(int argc, char **argv)
{
    struct err err = { .code = ERR_USAGE, .msg = "see the top of payloads.c" };

    if (argc != 4 || run(argv, &err)) {
        fprintf(stderr, "payloads: %s\n", err.msg);
        return err_exit_status(err.code);
    }
    return 0;
}
