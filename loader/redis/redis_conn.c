/* redis_conn.c - a connection: opens it, logs in, writes and reads its socket with time limits. */
#include "loader/redis/redis_conn.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/unconst.h"
#include "loader/redis/redis_tls.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    INPUT = 1 << 14,  // bytes to read ahead; payloads bypass this buffer
    LINE = 32,        // bytes: enough for the first line of a string
    OUTPUT = 1 << 14, // of small commands, sent together
    AUTH_MAX = 1 << 20,
    REPLY_MAX = 1 << 26, // bytes of a reply: a value has one million, a list of keys or slots a few millions
    LINE_MAX = 1 << 16,  // bytes of a line of it: hiredis searches a growing line from its start
    LIST_MAX = 1 << 20,  // elements of all its lists together
};
static const double timeout_s = 10, connect_s = 2;

#if HIREDIS_MAJOR < 1
#define list_size int
#else
#define list_size size_t
#endif

struct redis_conn {
    redisContext *context;
    struct redis_tls *tls;     // NULL: none
    char name[REDIS_HOST + 8]; // HOST:PORT, for messages
    double timeout_s;
    int forks; // of the process that opened it
    bool failed, late;
    char *input, *output; // INPUT, OUTPUT
    size_t n_output;
    size_t from, to;                     // the unread bytes of the input
    double until;                        // deadline of the current reply
    size_t n_reply, n_line, n_elements;  // of it, given to hiredis
    size_t left;                         // if it is a string: its bytes not taken yet
    redisReplyObjectFunctions functions; // hiredis's own, except for lists
    void *(*make_list)(const redisReadTask *task, list_size n);
};

void redis_command_add_bytes(struct redis_command *c, const void *bytes, size_t n)
{
    c->word[c->n] = bytes;
    c->size[c->n++] = n;
}

void redis_command_add(struct redis_command *c, const char *word)
{
    redis_command_add_bytes(c, word, strlen(word));
}

void redis_reply_free(struct redisReply *reply)
{
    if (reply)
        freeReplyObject(reply);
}

/* ---- the socket ---------------------------------------------------------------------- */

static int fail(struct redis_conn *c, struct err *err, const char *why)
{
    c->failed = true;
    return err_set(err, ERR_NET, "redis at %s %s", c->name, why);
}

static int fail_by_errno(struct redis_conn *c, struct err *err)
{
    char why[128];

    snprintf(why, sizeof(why), "is gone: %.100s",
             errno == EPROTO && c->tls ? redis_tls_problem(c->tls) : strerror(errno));
    return fail(c, err, why);
}

static int fail_late(struct redis_conn *c, struct err *err)
{
    char why[64];

    c->late = true;
    snprintf(why, sizeof(why), "did not answer within %g s", c->timeout_s);
    return fail(c, err, why);
}

/* Waits until the socket can be read or written; TLS decides which. */
static int wait_for(struct redis_conn *c, short events, double until, struct err *err)
{
    struct pollfd p = { .fd = c->context->fd, .events = c->tls ? redis_tls_waits_for(c->tls) : events };

    for (;;) {
        double left = until - clock_now();
        if (left <= 0)
            return fail_late(c, err);
        int got = poll(&p, 1, (int)(left * 1e3) + 1);
        if (got > 0)
            return 0;
        if (got < 0 && errno != EINTR)
            return fail_by_errno(c, err);
    }
}

static int send_all(struct redis_conn *c, const char *bytes, size_t n, struct err *err)
{
    double until = clock_now() + c->timeout_s;

    while (n) {
        ssize_t done =
            c->tls ? redis_tls_send(c->tls, bytes, n) : send(c->context->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (done > 0) {
            bytes += done;
            n -= (size_t)done;
        } else if (done == 0)
            return fail(c, err, "has closed the connection");
        else if (errno != EINTR && errno != EAGAIN)
            return fail_by_errno(c, err);
        else if (wait_for(c, POLLOUT, until, err))
            return err->code;
    }
    return 0;
}

static int flush(struct redis_conn *c, struct err *err)
{
    size_t n = c->n_output;

    c->n_output = 0;
    return send_all(c, c->output, n, err);
}

/* Buffers small data; sends large data from its place. */
static int put(struct redis_conn *c, const char *bytes, size_t n, struct err *err)
{
    if (c->n_output + n > OUTPUT && flush(c, err))
        return err->code;
    if (n > OUTPUT)
        return send_all(c, bytes, n, err);
    memcpy(c->output + c->n_output, bytes, n);
    c->n_output += n;
    return 0;
}

/* Formats the command without hiredis, which would copy up to a million bytes. */
int redis_conn_send(struct redis_conn *c, const struct redis_command *command, struct err *err)
{
    char text[32];

    if (put(c, text, (size_t)snprintf(text, sizeof(text), "*%d\r\n", command->n), err))
        return err->code;
    for (int i = 0; i < command->n; i++)
        if (put(c, text, (size_t)snprintf(text, sizeof(text), "$%zu\r\n", command->size[i]), err) ||
            put(c, command->word[i], command->size[i], err) || put(c, "\r\n", 2, err))
            return err->code;
    return 0;
}

/* Waits for data and receives it into n buffers: the number of bytes; 0 with *err on failure. The deadline is that of
 * the whole reply, even if some of it is always there. */
static size_t receive(struct redis_conn *c, struct iovec *place, int n, struct err *err)
{
    struct msghdr message = { .msg_iov = place, .msg_iovlen = (size_t)n };

    if (clock_now() >= c->until) {
        fail_late(c, err);
        return 0;
    }
    for (;;) {
        ssize_t got = c->tls ? redis_tls_recv(c->tls, place->iov_base, place->iov_len)
                             : recvmsg(c->context->fd, &message, MSG_DONTWAIT);
        if (got > 0)
            return (size_t)got;
        if (got == 0) {
            fail(c, err, "has closed the connection");
            return 0;
        }
        if (errno != EAGAIN && errno != EINTR) {
            fail_by_errno(c, err);
            return 0;
        }
        if (wait_for(c, POLLIN, c->until, err))
            return 0;
    }
}

/* Reads more input behind the unread bytes; the buffer must not be full. */
static int read_ahead(struct redis_conn *c, struct err *err)
{
    size_t n = c->to - c->from;
    struct iovec space = { c->input + n, INPUT - n };

    memmove(c->input, c->input + c->from, n);
    c->from = 0;
    c->to = n;
    size_t got = receive(c, &space, 1, err);
    c->to += got;
    return got ? 0 : err->code;
}

/* ---- replies ------------------------------------------------------------------------- */

int redis_conn_take(struct redis_conn *c, struct iovec *place, int n, struct err *err)
{
    for (;;) {
        for (; n && !place->iov_len; n--)
            place++;
        if (!n)
            return 0;
        size_t ahead = c->to - c->from, got = ahead < place->iov_len ? ahead : place->iov_len;
        if (got) {
            memcpy(place->iov_base, c->input + c->from, got);
            c->from += got;
        } else {
            got = receive(c, place, n, err);
            if (!got)
                return err->code;
        }
        c->left -= got;
        for (struct iovec *at = place; got; at++) {
            size_t in = got < at->iov_len ? got : at->iov_len;
            at->iov_base = (char *)at->iov_base + in;
            at->iov_len -= in;
            got -= in;
        }
    }
}

/* Is the next reply a string? Then consumes its first line, "$123\r\n", and sets c->left to its length. */
static int find_string(struct redis_conn *c, bool *is_string, struct err *err)
{
    char *end = NULL, *stop;

    *is_string = false;
    while (!end) {
        size_t n = c->to - c->from;
        end = memchr(c->input + c->from, '\n', n);
        if (!end && (n >= LINE || read_ahead(c, err)))
            return n >= LINE ? 0 : err->code;
    }
    const char *line = c->input + c->from;
    if (line[0] != '$' || line[1] < '0' || line[1] > '9')
        return 0;
    unsigned long long n = strtoull(line + 1, &stop, 10);
    if (stop + 1 != end || *stop != '\r')
        return 0;
    if (n > REPLY_MAX)
        return fail(c, err, "sends a reply that is too long");
    c->from = (size_t)(end + 1 - c->input);
    c->left = (size_t)n;
    *is_string = true;
    return 0;
}

/* Lets `bytes` take the string, then skips the rest of it and its line end. */
static int take_string(struct redis_conn *c, const struct redis_bytes *bytes, struct err *err)
{
    if (bytes->take(bytes, c, c->left, err))
        return err->code;
    for (size_t left = c->left + 2, n; left; left -= n) {
        if (c->from == c->to && read_ahead(c, err))
            return err->code;
        n = left < c->to - c->from ? left : c->to - c->from;
        c->from += n;
    }
    return 0;
}

/* Gives hiredis a line, or its received bytes. Every reply ends with a line, so hiredis never gets bytes of the next
 * reply. */
static int feed_line(struct redis_conn *c, struct err *err)
{
    if (c->from == c->to && read_ahead(c, err))
        return err->code;
    const char *line = c->input + c->from, *end = memchr(line, '\n', c->to - c->from);
    size_t n = end ? (size_t)(end + 1 - line) : c->to - c->from;
    c->from += n;
    c->n_reply += n;
    c->n_line += n;
    if (c->n_reply > REPLY_MAX || c->n_line > LINE_MAX)
        return fail(c, err, "sends a reply that is too long");
    if (end)
        c->n_line = 0;
    return redisReaderFeed(c->context->reader, line, n) == REDIS_OK ? 0 : fail(c, err, "sends a malformed reply");
}

/* hiredis calls it with the claimed length of a list, before any element, to allocate them all: limits their sum. */
static void *take_list(const redisReadTask *task, list_size n)
{
    struct redis_conn *c = task->privdata;

    if ((size_t)n > LIST_MAX - c->n_elements)
        return NULL;
    c->n_elements += (size_t)n;
    return c->make_list(task, n);
}

int redis_conn_reply(struct redis_conn *c, const struct redis_bytes *bytes, struct redisReply **reply, struct err *err)
{
    bool is_string = false;
    void *got = NULL;

    *reply = NULL;
    c->until = clock_now() + c->timeout_s;
    c->n_reply = c->n_line = c->n_elements = 0;
    if ((c->n_output && flush(c, err)) || (bytes && find_string(c, &is_string, err)))
        return err->code;
    if (is_string)
        return take_string(c, bytes, err);
    while (redisReaderGetReply(c->context->reader, &got) == REDIS_OK) {
        *reply = got;
        if (got)
            return 0;
        if (feed_line(c, err))
            return err->code;
    }
    return fail(c, err, "sends a malformed reply");
}

int redis_refused(const struct redisReply *reply, struct err *err)
{
    char said[128] = "with an unexpected reply";

    if (reply->type == REDIS_REPLY_ERROR) {
        snprintf(said, sizeof(said), "'%.*s'", (int)(reply->len < 120 ? reply->len : 120), reply->str);
        for (char *at = said; *at; at++) /* the server's control characters must not reach a terminal */
            if (*at < ' ' || *at > '~')
                *at = '?';
    }
    return err_set(err, ERR_NET, "it answers %s", said);
}

int redis_conn_ask(struct redis_conn *c, const struct redis_command *command, struct redisReply **reply,
                   struct err *err)
{
    *reply = NULL;
    return redis_conn_send(c, command, err) || redis_conn_reply(c, NULL, reply, err) ? err->code : 0;
}

/* ---- logging in ------------------------------------------------------------------------ */

struct login {
    char *user, *password; // NULL: none
};

static int check_private(const char *path, struct err *err)
{
    struct stat st;

    if (stat(path, &st))
        return err_set(err, ERR_IO, "cannot open '%s' (EVP_REDIS_AUTH_FILE): %s", path, strerror(errno));
    return st.st_mode & (S_IRWXG | S_IRWXO)
               ? err_set(err, ERR_FAIL, "other users may read the passwords in '%s': run 'chmod 600' on it", path)
               : 0;
}

/* A line HOST:PORT USER PASSWORD: true if it is for this server. Cuts the line up. */
static bool take_line(char *line, const struct redis_address *at, struct login *login)
{
    char *user = line + strcspn(line, " \t"), *password;
    struct redis_address of;

    if (!*user || *line == '#')
        return false;
    *user++ = '\0';
    user += strspn(user, " \t");
    password = user + strcspn(user, " \t");
    if (!*password)
        return false;
    *password++ = '\0';
    password += strspn(password, " \t");
    if (strcmp(line, "*") != 0 &&
        !(redis_address_host(&of, line, strlen(line)) && strcmp(of.host, at->host) == 0 && of.port == at->port))
        return false;
    login->user = strdup(user);
    login->password = strdup(password);
    return true;
}

static int read_login(struct login *login, const char *path, const struct redis_address *at, struct err *err)
{
    struct buf text = { 0 };

    if (check_private(path, err) || file_read(&text, path, AUTH_MAX, err)) {
        buf_release(&text);
        return err->code;
    }
    char *line = unconst(buf_str(&text));
    for (bool found = false; line && *line && !found;) {
        char *end = line + strcspn(line, "\r\n");
        bool last = !*end;
        *end = '\0';
        found = take_line(line, at, login);
        line = last ? NULL : end + 1;
    }
    explicit_bzero(text.at, text.n);
    buf_release(&text);
    return 0;
}

static int find_login(struct login *login, const struct redis_address *at, struct err *err)
{
    const char *file = getenv("EVP_REDIS_AUTH_FILE"), *user = getenv("EVP_REDIS_USER"),
               *password = getenv("EVP_REDIS_PASSWORD");

    *login = (struct login){ 0 };
    if (file && *file)
        return read_login(login, file, at, err);
    if (password && *password) {
        login->user = user && *user ? strdup(user) : NULL;
        login->password = strdup(password);
    }
    return 0;
}

static void forget_login(struct login *login)
{
    if (login->password)
        explicit_bzero(login->password, strlen(login->password));
    free(login->password);
    free(login->user);
}

/* Runs a command; any reply except +OK is an error. */
static int must(struct redis_conn *c, const struct redis_command *command, struct err *err)
{
    struct redisReply *reply;

    if (redis_conn_ask(c, command, &reply, err))
        return err->code;
    int code = reply->type == REDIS_REPLY_STATUS ? 0 : redis_refused(reply, err);
    redis_reply_free(reply);
    return code ? err_wrap(err, "redis at %s", c->name) : 0;
}

static int log_in(struct redis_conn *c, const struct redis_address *at, struct err *err)
{
    struct redis_command auth = { 0 }, select = { 0 };
    struct login login;
    char number[16];

    int code = find_login(&login, at, err);
    if (!code && login.password) {
        redis_command_add(&auth, "AUTH");
        if (login.user)
            redis_command_add(&auth, login.user);
        redis_command_add(&auth, login.password);
        code = must(c, &auth, err);
    }
    forget_login(&login);
    if (code || !at->database)
        return code;
    snprintf(number, sizeof(number), "%d", at->database);
    redis_command_add(&select, "SELECT");
    redis_command_add(&select, number);
    return must(c, &select, err);
}

/* ---- opening ----------------------------------------------------------------------------- */

/* Parent and child must not share a connection. Process ids do not tell them apart: a new pid namespace counts anew. */
static int n_forks; // between the first process and this one

static void add_fork(void)
{
    n_forks++;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, add_fork); /* fails only without memory */
}

double redis_conn_timeout(void)
{
    const char *text = getenv("EVP_REDIS_TIMEOUT");
    double seconds;

    return text && parse_real(text, &seconds) && seconds >= 0.1 && seconds <= 3600 ? seconds : timeout_s;
}

static int connect_to(struct redis_conn *c, const struct redis_address *at, struct err *err)
{
    double limit = c->timeout_s < connect_s ? c->timeout_s : connect_s;
    struct timeval tv = { .tv_sec = (time_t)limit, .tv_usec = (suseconds_t)((limit - (double)(time_t)limit) * 1e6) };

    c->context = redisConnectWithTimeout(at->host, at->port, tv);
    if (!c->context)
        return err_nomem(err);
    if (c->context->err)
        return err_set(err, ERR_NET, "cannot reach redis at %s: %.100s", c->name, c->context->errstr);
    redisReader *reader = c->context->reader;
    c->functions = *reader->fn;
    c->make_list = c->functions.createArray;
    c->functions.createArray = take_list;
    reader->fn = &c->functions;
    reader->privdata = c;
    return 0;
}

static int shake_hands(struct redis_conn *c, const struct redis_address *at, struct err *err)
{
    double until = clock_now() + c->timeout_s;

    if (redis_tls_open(&c->tls, c->context->fd, at->host, err))
        return err->code;
    while (redis_tls_shake_hands(c->tls)) {
        if (errno != EAGAIN)
            return err_set(err, ERR_NET, "cannot speak TLS with redis at %s: %.160s", c->name,
                           redis_tls_problem(c->tls));
        if (wait_for(c, POLLIN, until, err))
            return err->code;
    }
    return 0;
}

int redis_conn_open(struct redis_conn **conn, const struct redis_address *at, struct err *err)
{
    static pthread_once_t watching = PTHREAD_ONCE_INIT;
    struct redis_conn *c = calloc(1, sizeof(*c));

    *conn = NULL;
    if (c)
        c->input = malloc(INPUT + OUTPUT);
    if (!c || !c->input) {
        free(c);
        return err_nomem(err);
    }
    c->output = c->input + INPUT;
    snprintf(c->name, sizeof(c->name), strchr(at->host, ':') ? "[%s]:%d" : "%s:%d", at->host, at->port);
    c->timeout_s = redis_conn_timeout();
    pthread_once(&watching, watch_forks);
    c->forks = n_forks;
    if (!connect_to(c, at, err) && (!at->tls || !shake_hands(c, at, err)) && !log_in(c, at, err)) {
        *conn = c;
        return 0;
    }
    redis_conn_close(c);
    return err->code;
}

void redis_conn_close(struct redis_conn *c)
{
    if (!c)
        return;
    redis_tls_close(c->tls);
    if (c->context)
        redisFree(c->context);
    free(c->input);
    free(c);
}

bool redis_conn_is_usable(const struct redis_conn *c)
{
    return !c->failed && c->forks == n_forks;
}

bool redis_conn_is_late(const struct redis_conn *c)
{
    return c->late;
}
