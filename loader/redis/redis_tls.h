/* redis_tls.h - TLS over the socket of a connection to a Redis server (rediss://), by OpenSSL.
 *
 * The server's certificate must name the host of the address, and be signed by an authority that this machine, or the
 * file EVP_REDIS_CA_FILE, trusts. If the server requires client certificates, as Redis does without `tls-auth-clients
 * no`, EVP_REDIS_CERT_FILE and EVP_REDIS_KEY_FILE name the certificate and its private key. All files are PEM.
 *
 * The caller owns the socket and waits for it; nothing here blocks or raises SIGPIPE.
 */
#ifndef EVP_REDIS_TLS_H
#define EVP_REDIS_TLS_H

#include "base/err.h"

#include <stddef.h>
#include <sys/types.h>

struct redis_tls;

/* ERR_IO, ERR_FAIL: a file that the environment names cannot be used. */
int redis_tls_open(struct redis_tls **t, int fd, const char *host, struct err *err) MUST_CHECK;
void redis_tls_close(struct redis_tls *t); // NULL is fine; the socket stays open

/* Like send() and recv() on a non-blocking socket: the number of bytes, 0 if the server has closed the connection, or
 * -1 with errno. EAGAIN: wait for redis_tls_waits_for() first; then send the same bytes again. */
ssize_t redis_tls_send(struct redis_tls *t, const void *bytes, size_t n);
ssize_t redis_tls_recv(struct redis_tls *t, void *bytes, size_t n);

/* Continues the handshake: 0 when done; -1 as above, or with EPROTO and redis_tls_problem(). */
int redis_tls_shake_hands(struct redis_tls *t);

short redis_tls_waits_for(const struct redis_tls *t); // POLLIN or POLLOUT
const char *redis_tls_problem(const struct redis_tls *t);

#endif
