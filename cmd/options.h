/* options.h - rows of the option tables that several tools have (base/opt.h): an option means the same in all of
 * them. */
#ifndef EVP_OPTIONS_H
#define EVP_OPTIONS_H

#include "base/opt.h"

/* Of which only the shape, and the tokenizer, count. */
#define OPT_MODEL_SHAPE(p)                                                                                             \
    OPT_TEXT('m', "model", p, "MODEL",                                                                                 \
             "the model that the requests are for: a .gguf file, a model folder or its config.json, with or without "  \
             "weights, ORG/NAME in the Hugging Face cache, or 'synthetic:llama-3.1-8b'")
#define OPT_MODEL(p)                                                                                                   \
    OPT_TEXT('m', "model", p, "MODEL",                                                                                 \
             "a .gguf file, a model folder, or ORG/NAME in the Hugging Face cache (default: SmolLM2-135M-Instruct); "  \
             "'synthetic:llama-3.1-8b' has that shape and random weights, to measure speed")
#define OPT_NAMESPACE(p)                                                                                               \
    OPT_TEXT(0, "namespace", p, "NAME",                                                                                \
             "namespace of the payloads; several can share the same folders (default: the model's digest)")
#define OPT_PARTIAL(p) OPT_BOOL(0, "partial", p, "go on when more than a tenth of the requests in the logs is left out")
#define OPT_CHAT(p)                                                                                                    \
    OPT_TEXT(0, "chat-template", p, "FILE",                                                                            \
             "a text with {content} in place of the message, instead of the model's chat template; none: the message " \
             "alone"),                                                                                                 \
        OPT_DATED("date", p, "the model's chat template, with this date_string in place of the day: '26 Jul 2024'")
/* names: BACKEND_NAMES and BACKEND_DTYPES of kernels/backend.h, those of this build. OPT_TEXT, not OPT_PICK:
 * backend_open() refuses other names with an exit status of its own. */
#define OPT_BACKEND(p, names) OPT_TEXT(0, "backend", p, names, "compute with this backend")
#define OPT_DTYPE(p, names)                                                                                            \
    OPT_TEXT(0, "dtype", p, names,                                                                                     \
             "compute in this number type; auto: on a GPU in that of the model's weights (f32 as f32, all else as "    \
             "bf16), on a CPU in f32; fastest: in what a short trial finds faster here")
#define OPT_MEMORY(p)  OPT_BYTES(0, "memory", p, "use at most this much memory; 0: nine tenths of what is free")
#define OPT_THREADS(p) OPT_NUM('j', "threads", p, 0, 4096, "number of threads; 0: one per core")
#define OPT_EMBEDDER(p)                                                                                                \
    OPT_TEXT(0, "embedder", p, "DIR", "folder of all-MiniLM-L6-v2 (default: where `evp models` puts it)")
#define OPT_PROFILE_OPTIONS(p)                                                                                         \
    OPT_TEXT(0, "profile-options", p, "TEXT", "more options for evp-profile, separated by blanks")
/* names: SERVING_GPUS of profiler/score/serving.h */
#define OPT_GPU(p, names)                                                                                              \
    OPT_TEXT(0, "gpu", p, names,                                                                                       \
             "use figures computed from this GPU's data sheet instead of measured ones; FIGURES are of another one, "  \
             "tflops=989,memory=80G,bandwidth=3.35T, and pcie=64G if that is not said")
#define OPT_GPUS(p, least) OPT_NUM(0, "gpus", p, least, 1000000, "number of GPUs, each with the whole model")
#define OPT_RATE_HELP      "requests per second of all contexts together"
#define OPT_TIME_UNIT(p)                                                                                               \
    OPT_PICK(0, "time-unit", p, "auto|s|ms|us|ns", "unit of times in traces; auto: as their rows tell")
#define OPT_REUSE(p)                                                                                                   \
    OPT_TEXT(0, "reuse", p, "zipf:S,N[,SHARE]",                                                                        \
             "each request of a trace of Azure or BurstGPT, which names no contexts, begins with one of N, drawn by "  \
             "Zipf's law with the exponent S, which is that SHARE (0.5) of its prompt")
#define OPT_OUTPUT_TOKENS(p)                                                                                           \
    OPT_NUM(0, "output-tokens", p, 0, 1000000, "tokens of every answer, whose decoding counts, too")
#define OPT_SEED(p) OPT_NUM('s', "seed", p, 0, INT_MAX, "seed of random choices")
#define OPT_SHARD(p)                                                                                                   \
    {                                                                                                                  \
        OPT_SHARE, 0, "shard",                                                                                         \
            _Generic((p), struct shard *                                                                               \
                     : (p)),                                                                                           \
            "I/N", "process only the I-th of N equal shares of the rows", 0, 0                                         \
    }
#define OPT_CONFIGS(p)                                                                                                 \
    OPT_WORDS('c', "configs", p,                                                                                       \
              "configs to try, separated by commas, ranges as from..to/step, or default, papers, all; always with "    \
              "'none'; kvpress and the papers call 'drop' compression ratio")
#define OPT_PLUGIN(p)                                                                                                  \
    OPT_TEXT(0, "plugin", p, "LIB,..", "methods of your own: shared objects that export evp_method (evp_method.h)")
#define OPT_KVZAP(p)          OPT_TEXT(0, "kvzap", p, "FILE", "the file that kvzap needs, of evp-profile --fit-kvzap")
#define OPT_MAX_NEW_TOKENS(p) OPT_NUM(0, "max-new-tokens", p, 1, 4096, "longest answer, in tokens")
#define OPT_TRUNCATE(p)                                                                                                \
    OPT_BOOL(0, "truncate", p, "cut contexts longer than the model allows, instead of leaving them out")
#define OPT_PER_CONTEXT(p) OPT_NUM(0, "per-context", p, 1, 10000, "number of questions about each context")
#define OPT_FORGET(p)                                                                                                  \
    OPT_PERIOD(0, "forget", p, "DAYS", 0, 1e6,                                                                         \
               "leave out contexts that nobody has asked about for this long before the last request; 0: none")
#define OPT_ACCESS(p)                                                                                                  \
    OPT_MANY('a', "access", p, "FILE",                                                                                 \
             "access log, plain or compressed; may be repeated: counts add up; without it every context counts once")
#define OPT_MIN_QUALITY(p)                                                                                             \
    OPT_REAL(0, "min-quality", p, 0, 1, "use no variant of lower predicted quality for any context")
#define OPT_MOVE_COST(dst) OPT_REAL(0, "move-cost", dst, 0, 1e9, "utility that each GiB written must bring")
#define OPT_PACK_WEIGHT(dst)                                                                                           \
    OPT_REAL(0, "pack-weight", dst, 0, 1e9,                                                                            \
             "seconds of TTFT that each second of packing must save: of the GPU for prefills, of tiers for writes")
#define OPT_CHUNKS(p)                                                                                                  \
    OPT_BOOL(0, "chunks", p, "also find contexts placed as 'none' by their first 256 tokens, 512, and so on")
#define OPT_JSON(p)      OPT_BOOL(0, "json", p, "print one JSON object instead, with every detail")
#define OPT_TIERS(p)     OPT_TEXT('t', "tiers", p, "FILE", "tiers.json: capacity, bandwidth and latency of each tier")
#define OPT_ALPHA_HELP   "seconds of TTFT that a quality of 1 is worth"
#define OPT_DRY_RUN(p)   OPT_BOOL('n', "dry-run", p, "report what would be done, and stop")
#define OPT_OUTPUT_HELP  "write the result there; a file appears whole or not at all"
#define OPT_OUTPUT(p, a) OPT_WRITES('o', "output", p, a, OPT_OUTPUT_HELP)
#define OPT_STREAM(p, a) OPT_WRITTEN('o', "output", p, a, OPT_OUTPUT_HELP, 1) // '-' is standard output

#endif
