/* redis_address.h - where a Redis server is: redis://HOST[:PORT][/DATABASE], HOST a name or an address, that of IPv6 in
 * brackets; rediss:// for TLS. Names and passwords are refused: tiers travel in every manifest and receipt.
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

/* Does it begin as such a uri? Others are paths of folders. */
bool redis_address_is(const char *uri);

/* ERR_FORMAT: the uri is none; the sentence does not repeat what may be a password. */
int redis_address_parse(struct redis_address *a, const char *uri, struct err *err) MUST_CHECK;

/* HOST or HOST:PORT of n bytes, as above; also in the replies of a cluster. false: it is none. */
bool redis_address_host(struct redis_address *a, const char *text, size_t n);

#endif
