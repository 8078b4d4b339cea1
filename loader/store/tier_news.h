/* tier_news.h - what of a store its index on disk does not say yet: kept by tier_store.c as it changes rows, until
 * tier_store_publish() has written it.
 */
#ifndef EVP_TIER_NEWS_H
#define EVP_TIER_NEWS_H

#include "loader/store/tier_store.h"

enum { TIER_UNPUBLISHED = -1 }; // a generation that no index has

int tier_news_open(struct tier_store *s, struct err *err) MUST_CHECK;
void tier_news_close(struct tier_store *s);

/* The row of s->in.at[entry] changes. gone: parts that it had, taken over; NULL: none. */
int tier_news_touch(struct tier_store *s, int entry, struct state_parts *gone, struct err *err) MUST_CHECK;

/* A payload that is not in s->in has a row, and no parts. */
int tier_news_place(struct tier_store *s, const struct entry *e, struct err *err) MUST_CHECK;

#endif
