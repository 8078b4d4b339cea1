/* payloads.c - payloads of one context under many configs, from one prefill, for the scripts beside it.
 *
 *     payloads MODEL CONFIGS DIR <IDS       IDS: token ids, blanks between; writes DIR/0.safetensors (`none`), DIR/1...
 */
#include "base/buf.h"
#include "base/file.h"
#include "engine/engine.h"
#include "methods/packed_payload.h"

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
        code = packed_payload_write(path, &v, &(struct payload_key){ zeros, zeros, ids }, NULL, err);
        fprintf(stderr, "%s: %.3f s to compress, %.3f s to unpack\n", config->name, v.compress_s, v.decompress_s);
        variant_release(&v);
    }
    return code;
}

static int run(char **arg, struct err *err)
{
    struct engine *e = engine_open(&(struct engine_options){ .model = arg[1], .backend = "auto" }, err);
    struct session *s = e ? session_new(e, err) : NULL;
    struct prefill want = { 0 };
    struct config *configs = NULL;
    double seconds;
    int n = 0, code = s ? config_list(&configs, &n, arg[2], err) : err->code;

    if (!code)
        code = read_ids(&want, err);
    configs_need(configs, n, &want.needs, &want.window);
    if (!code)
        code = session_prefill(s, &want, &seconds, err);
    struct compressor *c = code ? NULL : compressor_new(session_full(s), err);
    if (!c)
        code = err->code;
    for (int i = 0; i < n && !code; i++) {
        struct buf path = { 0 };
        buf_printf(&path, "%s/%d.safetensors", arg[3], i);
        code = write_payload(c, &configs[i], buf_str(&path), want.ids, err);
        buf_release(&path);
    }
    compressor_free(c);
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
