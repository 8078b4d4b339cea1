/* request_time.c - times in logs, without the C library's calendar, which depends on time zone and language. */
#include "base/parse.h"
#include "logs/request.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Days from 1970-01-01 to a day of the Gregorian calendar (Howard Hinnant, days_from_civil). */
static int64_t days_of(int64_t y, int64_t m, int64_t d)
{
    y -= m <= 2;
    int64_t era = (y >= 0 ? y : y - 399) / 400, of_era = y - era * 400;
    int64_t of_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

struct moment {
    int year, month, day, hour, minute;
    double second;
};

static int64_t days_in(int year, int month)
{
    return month == 12 ? 31 : days_of(year, month + 1, 1) - days_of(year, month, 1);
}

static double seconds_of(const struct moment *m, int zone_minutes)
{
    if (m->month < 1 || m->month > 12 || m->day < 1 || m->day > days_in(m->year, m->month) || m->hour < 0 ||
        m->hour > 24 || m->minute < 0 || m->minute > 59 || !(m->second >= 0 && m->second < 61) || m->year < 1900 ||
        m->year > 9999)
        return (double)NAN;
    int64_t minutes = (days_of(m->year, m->month, m->day) * 24 + m->hour) * 60 + m->minute - zone_minutes;
    return (double)minutes * 60 + m->second;
}

/* +02:00, +0200, Z or nothing, and nothing after it. False: something else. */
static bool zone_of(const char *s, int *minutes)
{
    int hour, minute, end = 0;
    char sign;

    *minutes = 0;
    s += *s == ' ';
    if (*s == '\0' || strcmp(s, "Z") == 0 || strcmp(s, "UTC") == 0)
        return true;
    if ((sscanf(s, "%c%2d:%2d%n", &sign, &hour, &minute, &end) != 3 &&
         sscanf(s, "%c%2d%2d%n", &sign, &hour, &minute, &end) != 3) ||
        s[end] || (sign != '+' && sign != '-'))
        return false;
    *minutes = (sign == '-' ? -1 : 1) * (hour * 60 + minute);
    return true;
}

static double iso_time(const char *s)
{
    struct moment m = { 0 };
    char between;
    int end = 0, zone;

    if (sscanf(s, "%4d-%2d-%2d%c%2d:%2d:%n", &m.year, &m.month, &m.day, &between, &m.hour, &m.minute, &end) != 6 ||
        !end || (between != 'T' && between != ' '))
        return (double)NAN;
    size_t digits = strspn(s + end, "0123456789.,");
    char second[TEXT_SHORT];
    if (digits == 0 || digits >= sizeof(second))
        return (double)NAN;
    memcpy(second, s + end, digits);
    second[digits] = '\0';
    char *comma = strchr(second, ',');
    if (comma)
        *comma = '.';
    if (!parse_real(second, &m.second) || !zone_of(s + end + digits, &zone))
        return (double)NAN;
    return seconds_of(&m, zone);
}

/* nginx's and Apache's $time_local. */
static double local_time(const char *s)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct moment m = { 0 };
    char month[4];
    int second, end = 0, zone;

    if (sscanf(s, "%2d/%3[A-Za-z]/%4d:%2d:%2d:%2d%n", &m.day, month, &m.year, &m.hour, &m.minute, &second, &end) != 6)
        return (double)NAN;
    const char *at = strlen(month) == 3 ? strstr(months, month) : NULL;
    if (!at || (at - months) % 3 || !zone_of(s + end, &zone))
        return (double)NAN;
    m.month = (int)(at - months) / 3 + 1;
    m.second = second;
    return seconds_of(&m, zone);
}

/* The size of a number tells its unit: seconds have ten digits now. */
static double number_time(double v)
{
    if (!(v >= 0))
        return (double)NAN;
    return v < 1e11 ? v : v < 1e14 ? v / 1e3 : v < 1e17 ? v / 1e6 : v / 1e9;
}

double request_time(const char *text)
{
    double v;

    if (parse_real(text, &v))
        return number_time(v);
    v = iso_time(text);
    return isnan(v) ? local_time(text) : v;
}

/* ---- lines of text -------------------------------------------------------- */

enum { LONGEST_TIME = 40, PREFIX = 96 }; // bytes of a time; bytes of a line among which it must be

/* The ISO time that a line begins with, up to the blank or bracket after it. */
static double time_at(const char *line)
{
    char text[LONGEST_TIME];
    size_t n = strcspn(line, " ]\t");

    if (n == sizeof("2026-11-22") - 1 && line[n] == ' ')
        n += 1 + strcspn(line + n + 1, " ]\t");
    if (n >= sizeof(text))
        return (double)NAN;
    memcpy(text, line, n);
    text[n] = '\0';
    return iso_time(text);
}

/* The last year in which the moment exists and is not after `newest`: within eight years there is a leap year. */
static double last_time(struct moment *m, double newest)
{
    double year = 1970 + floor(newest / (365.2425 * 86400)) + 1;

    if (!(year >= 1970 && year < 9999))
        return (double)NAN;
    for (int back = 0; back <= 9; back++) {
        m->year = (int)year - back;
        double t = seconds_of(m, 0);
        if (t <= newest)
            return t;
    }
    return (double)NAN;
}

double request_time_before(const char *line, double newest)
{
    char text[PREFIX + 1]; /* sscanf() would look for the end of the whole line every time */
    struct moment m = { 0 };
    size_t n = strnlen(line, PREFIX);
    double t = time_at(line + (*line == '['));
    int second;

    memcpy(text, line, n);
    text[n] = '\0';
    for (char *at = text; isnan(t) && *at; at += strcspn(at, " "), at += *at == ' ') {
        int end = 0;
        if (sscanf(at, "%2d-%2d %2d:%2d:%2d%n", &m.month, &m.day, &m.hour, &m.minute, &second, &end) == 5 &&
            end == sizeof("11-22 05:58:00") - 1) {
            m.second = second;
            t = last_time(&m, newest);
        }
    }
    return t;
}
