/* bert_chars.h - the class of each character in BERT's tokenizer, as in Hugging Face's `tokenizers`.
 *
 * That library follows Unicode 8 and treats marks and punctuation of later versions as ordinary characters. So the
 * classes are tables of our own (bert_ranges.h), not utf8proc's, which follow newer versions of Unicode.
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
