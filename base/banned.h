/* banned.h - turns unsafe functions into compile errors that name them.
 *
 * The Makefile includes it into every C file (-include). Safer replacements: buf_printf or snprintf for text,
 * base/parse.h for numbers, base/rng.h for random numbers, gmtime_r for dates.
 */
#ifndef EVP_BANNED_H
#define EVP_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BANNED(function) sorry_##function##_is_banned

#undef strcpy
#define strcpy(...) BANNED(strcpy)
#undef strcat
#define strcat(...) BANNED(strcat)
#undef strncpy
#define strncpy(...) BANNED(strncpy)
#undef strncat
#define strncat(...) BANNED(strncat)
#undef sprintf
#define sprintf(...) BANNED(sprintf)
#undef vsprintf
#define vsprintf(...) BANNED(vsprintf)
#undef strtok
#define strtok(...) BANNED(strtok)
#undef atoi
#define atoi(...) BANNED(atoi)
#undef atol
#define atol(...) BANNED(atol)
#undef atof
#define atof(...) BANNED(atof)
#undef gets
#define gets(...) BANNED(gets)
#undef rand
#define rand(...) BANNED(rand)
#undef srand
#define srand(...) BANNED(srand)
#undef localtime
#define localtime(...) BANNED(localtime)
#undef gmtime
#define gmtime(...) BANNED(gmtime)

#endif
