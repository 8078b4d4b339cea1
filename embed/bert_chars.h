/* bert_chars.h - what BERT's tokenizer takes each character for, as Hugging Face's `tokenizers` does.
 *
 * That library goes by Unicode 8. Marks and punctuation that came later are ordinary characters to it, so the classes
 * are tables of our own (bert_ranges.h) and not utf8proc's, whose Unicode grows.
 */
#ifndef EVP_BERT_CHARS_H
#define EVP_BERT_CHARS_H

#include <stdbool.h>
#include <stdint.h>

bool bert_is_dropped(uint32_t c);     // control, format and private use, U+FFFD
bool bert_is_space(uint32_t c);       // becomes a blank
bool bert_is_ideograph(uint32_t c);   // a word of its own
bool bert_is_mark(uint32_t c);        // combining, after canonical decomposition; left out
bool bert_is_punctuation(uint32_t c); // a word of its own

#endif
