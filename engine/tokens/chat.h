/* chat.h - the two halves of a chat template around one user message, and its text between several messages.
 *
 * Templates are Jinja programs, and this is not a Jinja interpreter. Words in a template tell its family; the two
 * halves of each family were rendered once with Jinja and are stored in a table. Three properties are read from the
 * template itself: whether it writes the first token, its own system turn, and whether it trims the message.
 *
 * To add a family: (1) a row in engine/tokens/chat.c, before any row with words that its templates contain too (2) its
 * template and Jinja's output in tests/golden/chat.
 */
#ifndef EVP_CHAT_H
#define EVP_CHAT_H

#include "base/err.h"

#include "engine/model/text_view.h"

/* The text that a template writes before and after a message; static, or the chat's. NULL: the template has no such
 * message. */
struct chat_marks {
    const char *open, *close;
};

struct chat {
    char *head, *tail; // owned
    bool trims;        // white space at both ends of the message is left out (Python's str.strip())
    bool today;        // the template asks for the day, and servers write it
    /* for conversations */
    const char *no_turns; // why the template cannot be used for several messages; NULL: it can
    char *first;          // text before the first message, if that is a system turn; owned
    struct chat_marks system, user, assistant;
    char *system_open; // of `system` after chat_set_date(); owned
};

/* Finds a template's family and fills in the two halves. `bos` is "" where the model has none. ERR_FORMAT for a
 * template of an unknown family. */
int chat_find(struct chat *c, struct text_view jinja, const char *bos, struct err *err) MUST_CHECK;

/* The text after "date:", NULL: there is no such word. Writing it as a server does that is given it as date_string;
 * ERR_FORMAT: the template writes none. */
const char *chat_date(const char *option);
int chat_set_date(struct chat *c, const char *date, struct err *err) MUST_CHECK;

/* A custom template: the text before {content} and the text after it, as they are. ERR_FORMAT unless the text is UTF-8
 * without NUL and contains {content} once. */
int chat_parse(struct chat *c, struct text_view text, struct err *err) MUST_CHECK;

void chat_release(struct chat *c);

#endif
