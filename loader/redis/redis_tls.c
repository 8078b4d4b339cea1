/* redis_tls.c - OpenSSL over a non-blocking socket. OpenSSL's own BIO for sockets would raise SIGPIPE. */
#include "loader/redis/redis_tls.h"

#include "base/unconst.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct redis_tls {
    int fd;
    BIO_METHOD *method;
    SSL_CTX *context;
    SSL *ssl;
    short waits_for;
    char problem[160];
};

/* ---- the socket ------------------------------------------------------------------------ */

static int socket_write(BIO *bio, const char *bytes, int n)
{
    const struct redis_tls *t = BIO_get_data(bio);
    ssize_t done = send(t->fd, bytes, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);

    BIO_clear_retry_flags(bio);
    if (done < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(bio);
    return (int)done;
}

static int socket_read(BIO *bio, char *bytes, int n)
{
    const struct redis_tls *t = BIO_get_data(bio);
    ssize_t done = recv(t->fd, bytes, (size_t)n, MSG_DONTWAIT);

    BIO_clear_retry_flags(bio);
    if (done < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(bio);
    return (int)done;
}

static long socket_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

/* 0: no memory */
static int use_socket(struct redis_tls *t)
{
    // without its own type index: a process has 127 of them, and each connection would take one
    t->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "socket without signals");
    if (!t->method || !BIO_meth_set_write(t->method, socket_write) || !BIO_meth_set_read(t->method, socket_read) ||
        !BIO_meth_set_ctrl(t->method, socket_control))
        return 0;
    BIO *bio = BIO_new(t->method);
    if (!bio)
        return 0;
    BIO_set_data(bio, t);
    BIO_set_init(bio, 1);
    SSL_set_bio(t->ssl, bio, bio);
    return 1;
}

/* ---- certificates ------------------------------------------------------------------------ */

/* OpenSSL's reason for a failure. */
static const char *reason(void)
{
    const char *why = ERR_reason_error_string(ERR_peek_last_error());
    return why ? why : "unknown reason";
}

static int set_files(SSL_CTX *context, struct err *err)
{
    const char *ca = getenv("EVP_REDIS_CA_FILE"), *cert = getenv("EVP_REDIS_CERT_FILE"),
               *key = getenv("EVP_REDIS_KEY_FILE");

    if (ca && *ca ? !SSL_CTX_load_verify_file(context, ca) : !SSL_CTX_set_default_verify_paths(context))
        return err_set(err, ERR_IO, "cannot use the certificates of '%s' (EVP_REDIS_CA_FILE): %s",
                       ca && *ca ? ca : "this machine", reason());
    if (!cert || !*cert)
        return 0;
    if (SSL_CTX_use_certificate_chain_file(context, cert) != 1)
        return err_set(err, ERR_IO, "cannot use the certificate '%s' (EVP_REDIS_CERT_FILE): %s", cert, reason());
    if (!key || SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
        return err_set(err, ERR_IO, "cannot use the key '%s' (EVP_REDIS_KEY_FILE) of that certificate: %s",
                       key ? key : "", reason());
    return 0;
}

/* Requires that the certificate names the host. 0: no memory. */
static int expect(SSL *ssl, const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];

    if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
    return SSL_set1_host(ssl, host) &&
           SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, unconst(host));
}

int redis_tls_open(struct redis_tls **tls, int fd, const char *host, struct err *err)
{
    struct redis_tls *t = calloc(1, sizeof(*t));

    *tls = NULL;
    ERR_clear_error();
    if (t) {
        t->fd = fd;
        t->context = SSL_CTX_new(TLS_client_method());
    }
    if (!t || !t->context)
        err_nomem(err);
    else if (!set_files(t->context, err)) {
        SSL_CTX_set_min_proto_version(t->context, TLS1_2_VERSION);
        SSL_CTX_set_options(t->context, SSL_OP_IGNORE_UNEXPECTED_EOF); // replies carry their length
        SSL_CTX_set_verify(t->context, SSL_VERIFY_PEER, NULL);
        SSL_CTX_set_mode(t->context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        t->ssl = SSL_new(t->context);
        if (t->ssl && use_socket(t) && expect(t->ssl, host)) {
            *tls = t;
            return 0;
        }
        err_nomem(err);
    }
    redis_tls_close(t);
    return err->code;
}

void redis_tls_close(struct redis_tls *t)
{
    if (!t)
        return;
    SSL_free(t->ssl);
    SSL_CTX_free(t->context);
    BIO_meth_free(t->method);
    free(t);
}

/* ---- bytes ------------------------------------------------------------------------------- */

/* Converts the result of an OpenSSL function to recv()'s. */
static ssize_t result(struct redis_tls *t, int got)
{
    int why = got > 0 ? SSL_ERROR_NONE : SSL_get_error(t->ssl, got);

    switch (why) {
    case SSL_ERROR_NONE: return got;
    case SSL_ERROR_ZERO_RETURN: return 0;
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        t->waits_for = why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
        errno = EAGAIN;
        return -1;
    case SSL_ERROR_SYSCALL:
        if (errno == 0) // the connection ended without a TLS close
            return 0;
        return -1;
    default: errno = EPROTO; return -1;
    }
}

ssize_t redis_tls_send(struct redis_tls *t, const void *bytes, size_t n)
{
    ERR_clear_error();
    errno = 0;
    return result(t, SSL_write(t->ssl, bytes, n < 1 << 30 ? (int)n : 1 << 30));
}

ssize_t redis_tls_recv(struct redis_tls *t, void *bytes, size_t n)
{
    ERR_clear_error();
    errno = 0;
    return result(t, SSL_read(t->ssl, bytes, n < 1 << 30 ? (int)n : 1 << 30));
}

int redis_tls_shake_hands(struct redis_tls *t)
{
    ERR_clear_error();
    errno = 0;
    ssize_t got = result(t, SSL_connect(t->ssl));
    if (got > 0)
        return 0;
    if (got < 0 && errno == EAGAIN)
        return -1;
    long wrong = SSL_get_verify_result(t->ssl);
    snprintf(t->problem, sizeof(t->problem), "%s",
             wrong != X509_V_OK      ? X509_verify_cert_error_string(wrong)
             : ERR_peek_last_error() ? reason()
                                     : "it closes the connection; perhaps it does not use TLS");
    errno = EPROTO;
    return -1;
}

short redis_tls_waits_for(const struct redis_tls *t)
{
    return t->waits_for;
}

const char *redis_tls_problem(const struct redis_tls *t)
{
    return t->problem;
}
