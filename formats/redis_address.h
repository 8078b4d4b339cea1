/* redis_address.h - where a Redis server is: redis://HOST[:PORT][/DATABASE], or rediss:// for TLS. HOST is a name or an
 * address, IPv6 in brackets. User names and passwords are refused: every manifest and receipt carries the tiers.
 */
#ifndef EVP_REDIS_ADDRESS_H
#define EVP_REDIS_ADDRESS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { REDIS_HOST = 256 };

struct redis_address {
    char host[REDIS_HOST];
    int port;     // 6379 when the uri has none
    int database; // 0 when it has none
    bool tls;
};

/* Does it begin with redis:// or rediss://? */
bool redis_address_is(const char *uri);

/* ERR_FORMAT: not such a uri; the message does not repeat a possible password. */
int redis_address_parse(struct redis_address *a, const char *uri, struct err *err) MUST_CHECK;

/* Reads HOST or HOST:PORT of n bytes, as above; also for the replies of a cluster. false: malformed. */
bool redis_address_host(struct redis_address *a, const char *text, size_t n);

#endif
