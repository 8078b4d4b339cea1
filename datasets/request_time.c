/* request_time.c - times in logs, without the C library's calendar, which depends on time zone and language. */
#include "base/parse.h"
#include "datasets/request.h"

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

static double seconds_of(const struct moment *m, int zone_minutes)
{
    if (m->month < 1 || m->month > 12 || m->day < 1 || m->day > 31 || m->hour < 0 || m->hour > 24 || m->minute < 0 ||
        m->minute > 59 || !(m->second >= 0 && m->second < 61) || m->year < 1900 || m->year > 9999)
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
