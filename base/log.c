/* log.c - one lock around one state: the running bar and whether it is on the screen. Every message clears the bar
 * first; the next progress_add() draws it again.
 */
#include "base/log.h"

#include "base/clock.h"
#include "base/parse.h"
#include "base/utf8.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR = 24, NOTE = 64, KINDS = 64, SAID = 5 };
/* Seconds between two reports of progress; in a log once a minute after the first minute. */
static const double every_terminal = 0.1, every_plain = 5, every_minute = 60;

static struct {
    pthread_mutex_t lock;
    const char *name;
    enum log_level level;
    const char *what; /* NULL: no bar */
    int64_t done, total;
    double start, drawn;
    double end;     // expected end, from progress_left(); 0: not given
    bool on_screen; /* the terminal shows an unfinished bar line */
    char note[NOTE];
    struct {
        uint64_t hash;
        int64_t n;
        char *more; /* "error: text" of the last one that was not printed; NULL: none */
    } kind[KINDS];
} state = { .lock = PTHREAD_MUTEX_INITIALIZER, .name = "evp", .level = LOG_INFO };

/* EVP_TTY=1 or 0 overrides the test, for tests of the tools and for terminals that isatty() does not know. */
static bool terminal(void)
{
    const char *pretend = getenv("EVP_TTY");

    return pretend && *pretend ? *pretend == '1' : isatty(STDERR_FILENO) == 1;
}

static void clear_bar(void)
{
    if (state.on_screen)
        fputs("\r\033[K", stderr);
    state.on_screen = false;
}

static void describe(char *out, size_t n_out, double now)
{
    char left[TEXT_SHORT], spent[TEXT_SHORT];
    double seconds = now - state.start, rate = seconds > 0 ? (double)state.done / seconds : 0;
    int n = snprintf(out, n_out, "%lld", (long long)state.done);

    if (state.total > 0)
        n += snprintf(out + n, n_out - (size_t)n, "/%lld", (long long)state.total);
    n += snprintf(out + n, n_out - (size_t)n, " %s, %.*f/s, %s", state.what, rate < 10 ? 2 : 0, rate,
                  text_seconds(spent, seconds));
    if (state.total > state.done && (rate > 0 || state.end > 0))
        n += snprintf(out + n, n_out - (size_t)n, ", %s left",
                      text_seconds(left, state.end <= 0    ? (double)(state.total - state.done) / rate
                                         : state.end > now ? state.end - now
                                                           : 0));
    if (state.note[0])
        snprintf(out + n, n_out - (size_t)n, "  %s", state.note);
}

/* Bytes of text that fit after the bar, without splitting a character: a wrapped line could not be cleared. */
static int fitting(const char *text)
{
    struct winsize w = { 0 };
    int columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
    int max = columns - BAR - 4, n = (int)strlen(text);

    if (n <= max)
        return n;
    for (n = max > 0 ? max : 0; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
        n--;
    return n;
}

static void draw(bool last)
{
    char text[320];
    double now = clock_now();
    bool tty = terminal();
    double every = tty ? every_terminal : now - state.start < every_minute ? every_plain : every_minute;

    if (state.level < LOG_INFO || (!last && now - state.drawn < every))
        return;
    state.drawn = now;
    describe(text, sizeof(text), now);
    clear_bar();
    if (!tty || last) {
        fprintf(stderr, "%s: %s\n", state.name, text);
        return;
    }
    int64_t done = state.done < state.total ? state.done : state.total;
    int full = state.total > 0 ? (int)(BAR * done / state.total) : 0;
    fprintf(stderr, "[%.*s%.*s] %.*s", full, "########################", BAR - full, "                        ",
            fitting(text), text);
    fflush(stderr);
    state.on_screen = true;
}

void log_open(const char *name, enum log_level level)
{
    state.name = name;
    state.level = level;
}

/* What messages have in common that differ in their numbers and quoted names. */
static uint64_t kind_of(const char *text)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */

    for (bool quoted = false; *text; text++) {
        quoted ^= *text == '\'';
        if (!quoted && !(*text >= '0' && *text <= '9'))
            hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    }
    return hash;
}

/* Was enough said of this kind? What the table has no space for never is. */
static bool said_enough(enum log_level level, const char *prefix, const char *text)
{
    uint64_t hash = kind_of(text);
    int i = 0;

    if (level > LOG_WARN || state.level >= LOG_DEBUG)
        return false;
    while (i < KINDS && state.kind[i].n && state.kind[i].hash != hash)
        i++;
    if (i == KINDS)
        return false;
    state.kind[i].hash = hash;
    if (++state.kind[i].n <= SAID)
        return false;
    free(state.kind[i].more);
    if (asprintf(&state.kind[i].more, "%s%s", prefix, text) < 0)
        state.kind[i].more = NULL;
    return true;
}

void log_end(void)
{
    pthread_mutex_lock(&state.lock);
    clear_bar();
    for (int i = 0; i < KINDS; i++) {
        int64_t n = state.kind[i].n - SAID;
        if (state.kind[i].more)
            fprintf(stderr, "%s: %s\n", state.name, state.kind[i].more);
        if (state.kind[i].more && n > 1)
            fprintf(stderr, "%s: and %lld more like it (-v)\n", state.name, (long long)n - 1);
        free(state.kind[i].more);
        state.kind[i].more = NULL;
        state.kind[i].n = 0;
    }
    pthread_mutex_unlock(&state.lock);
}

__attribute__((format(printf, 3, 0))) static void say(enum log_level level, const char *prefix, const char *fmt,
                                                      va_list ap)
{
    if (level > state.level)
        return;
    char *text = NULL;
    bool made = vasprintf(&text, fmt, ap) >= 0;
    if (made)
        utf8_defuse(text); // messages quote names from files
    pthread_mutex_lock(&state.lock);
    if (!made || !said_enough(level, prefix, text)) {
        clear_bar();
        fprintf(stderr, "%s: %s%s\n", state.name, prefix, made ? text : fmt);
    }
    if (made)
        free(text);
    pthread_mutex_unlock(&state.lock);
}

#define SAY(function, level, prefix)                                                                                   \
    void function(const char *fmt, ...)                                                                                \
    {                                                                                                                  \
        va_list ap;                                                                                                    \
        va_start(ap, fmt);                                                                                             \
        say(level, prefix, fmt, ap);                                                                                   \
        va_end(ap);                                                                                                    \
    }
SAY(log_error, LOG_ERROR, "error: ")
SAY(log_warn, LOG_WARN, "warning: ")
SAY(log_info, LOG_INFO, "")
SAY(log_debug, LOG_DEBUG, "")
#undef SAY

int log_failure(const struct err *err)
{
    log_end();
    log_error("%s", err->msg);
    return err_exit_status(err->code);
}

void progress_begin(const char *what, int64_t total)
{
    pthread_mutex_lock(&state.lock);
    state.what = what;
    state.total = total;
    state.done = 0;
    state.note[0] = '\0';
    state.end = 0;
    state.start = state.drawn = clock_now();
    pthread_mutex_unlock(&state.lock);
}

void progress_add(int64_t done)
{
    pthread_mutex_lock(&state.lock);
    state.done += done;
    if (state.what)
        draw(false);
    pthread_mutex_unlock(&state.lock);
}

void progress_left(double seconds)
{
    pthread_mutex_lock(&state.lock);
    state.end = clock_now() + seconds;
    pthread_mutex_unlock(&state.lock);
}

void progress_note(const char *fmt, ...)
{
    va_list ap;

    pthread_mutex_lock(&state.lock);
    va_start(ap, fmt);
    vsnprintf(state.note, sizeof(state.note), fmt, ap);
    va_end(ap);
    utf8_defuse(state.note);
    if (state.what)
        draw(false);
    pthread_mutex_unlock(&state.lock);
}

void progress_end(void)
{
    pthread_mutex_lock(&state.lock);
    state.note[0] = '\0';
    if (state.what)
        draw(true);
    state.what = NULL;
    pthread_mutex_unlock(&state.lock);
}
