/* Dates and times as days since 1970-01-01; see cell.h. */
#include <ctype.h>
#include <math.h>
#include <stddef.h>

#include "data/network/csv/cell.h"
#include "data/network/csv/date_format.h"

/* Days from 1970-01-01 to a day of the Gregorian calendar; years begin in March. */
static int64_t days_of(int64_t year, int month, int day) {
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static int days_in(int64_t year, int month) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

/* Exactly `count` digits. */
static bool digits(int *value, const char **text, int count) {
    *value = 0;
    for (; count > 0; count--, ++*text) {
        if (!isdigit((unsigned char)**text)) return false;
        *value = *value * 10 + (**text - '0');
    }
    return true;
}

static bool read_day(double *days, const char **text) {
    int year, month, day;
    if (!digits(&year, text, 4) || (**text != '-' && **text != '/')) return false;
    char mark = *(*text)++;
    if (!digits(&month, text, 2) || *(*text)++ != mark || !digits(&day, text, 2)) return false;
    if (month < 1 || month > 12 || day < 1 || day > days_in(year, month)) return false;
    *days = (double)days_of(year, month, day);
    return true;
}

/* "08:30", "08:30:15.25" as a part of a day; 60 is a leap second. */
static bool read_time(double *part, const char **text) {
    int hour, minute, second = 0;
    double fraction = 0, unit = 1;
    if (!digits(&hour, text, 2) || *(*text)++ != ':' || !digits(&minute, text, 2)) return false;
    if (**text == ':' && (++*text, !digits(&second, text, 2))) return false;
    if (**text == '.' || **text == ',')
        for (++*text; isdigit((unsigned char)**text); ++*text)
            fraction += (unit /= 10) * (**text - '0');
    *part = (hour * 3600 + minute * 60 + second + fraction) / 86400;
    return hour < 24 && minute < 60 && second <= 60;
}

/* "Z", "+01:00", "-0530", "+01" */
static bool read_zone(double *part, const char **text) {
    int hour, minute = 0;
    *part = 0;
    if (**text == ' ') ++*text;
    if (!**text) return true;
    if (**text == 'Z' || **text == 'z') return ++*text, true;
    if (**text != '+' && **text != '-') return false;
    double sign = *(*text)++ == '-' ? -1 : 1;
    if (!digits(&hour, text, 2)) return false;
    if (**text == ':') ++*text;
    if (**text && !digits(&minute, text, 2)) return false;
    *part = sign * (hour * 60 + minute) / 1440;
    return hour < 24 && minute < 60;
}

static bool read_iso(double *days, const char *text) {
    double time = 0, zone = 0;
    while (isspace((unsigned char)*text)) text++;
    if (!read_day(days, &text)) return false;
    if (*text == 'T' || *text == 't' || (*text == ' ' && isdigit((unsigned char)text[1]))) {
        text++;
        if (!read_time(&time, &text) || !read_zone(&zone, &text)) return false;
    }
    while (isspace((unsigned char)*text)) text++;
    *days += time - zone;
    return !*text;
}

bool basin_cell_date(double *days, const char *text, const char *format) {
    if (!format) return read_iso(days, text);
    struct tm tm = {.tm_mday = 1};
    long east = 0;
    const char *end = basin_date_format_read(&tm, &east, text, format);
    while (end && isspace((unsigned char)*end)) end++;
    if (!end || *end || tm.tm_mday > days_in(tm.tm_year + INT64_C(1900), tm.tm_mon + 1))
        return false;
    double seconds = (double)tm.tm_hour * 3600 + (double)tm.tm_min * 60 + tm.tm_sec - (double)east;
    *days =
        (double)days_of(tm.tm_year + INT64_C(1900), tm.tm_mon + 1, tm.tm_mday) + seconds / 86400;
    return true;
}

bool basin_cell_epoch(double *days, const char *text) {
    const double low = 5e8, high = 4.2e9; /* seconds */
    double value;
    if (!basin_cell_number(&value, text)) return false;
    if (value >= 1000 * low && value < 1000 * high) value /= 1000;
    *days = value / 86400;
    return value >= low && value < high;
}
