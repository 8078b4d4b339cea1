/* redis_tls.h - TLS over the socket of a connection to a Redis server (rediss://), by OpenSSL.
 *
 * The server's certificate must be of the host that the address names, and be signed by somebody whom this machine
 * trusts, or the file EVP_REDIS_CA_FILE. Where a server wants a certificate of its clients, as Redis does unless told
 * `tls-auth-clients no`, EVP_REDIS_CERT_FILE and EVP_REDIS_KEY_FILE name it and its private key. All in PEM.
 *
 * The socket stays its owner's, who waits for it; nothing here blocks, and nothing raises SIGPIPE.
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

/* As send() and recv() of a socket that does not block: the bytes that were done, 0 when the server has closed; -1 with
 * errno, EAGAIN when it must first be possible to read or write (redis_tls_waits_for()). What is sent again after
 * EAGAIN begins with the same bytes. */
ssize_t redis_tls_send(struct redis_tls *t, const void *bytes, size_t n);
ssize_t redis_tls_recv(struct redis_tls *t, void *bytes, size_t n);

/* Goes on with the handshake: 0: done; -1 as above, with EPROTO for what redis_tls_problem() says. */
int redis_tls_shake_hands(struct redis_tls *t);

short redis_tls_waits_for(const struct redis_tls *t); // POLLIN or POLLOUT
const char *redis_tls_problem(const struct redis_tls *t);

#endif
