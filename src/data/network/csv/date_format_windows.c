/* Dates in the formats of strptime, which Windows lacks: of its letters %Y %y %m %d %e %H %M %S %b
 * %B %F %T %D %z, with names of months in English. A format with others reads nothing. See
 * date_format.h. */
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "data/network/csv/date_format.h"

static const char *digits(int *value, const char *text, int most, int low, int high) {
    int count = 0;
    for (*value = 0; count < most && isdigit((unsigned char)*text); count++)
        *value = *value * 10 + (*text++ - '0');
    return count && *value >= low && *value <= high ? text : NULL;
}

static const char *month(int *value, const char *text) {
    static const char *const name[] = {"January",   "February", "March",    "April",
                                       "May",       "June",     "July",     "August",
                                       "September", "October",  "November", "December"};
    for (int i = 0; i < 12; i++) {
        size_t whole = strlen(name[i]);
        *value = i;
        if (!_strnicmp(text, name[i], whole)) return text + whole;
        if (!_strnicmp(text, name[i], 3)) return text + 3;
    }
    return NULL;
}

/* "Z", "+0100", "+01:00". */
static const char *zone(long *east, const char *text) {
    int hours, minutes, sign = *text == '-' ? -1 : 1;
    *east = 0;
    if (*text == 'Z') return text + 1;
    if (*text != '+' && *text != '-') return NULL;
    text = digits(&hours, text + 1, 2, 0, 14);
    if (text && *text == ':') text++;
    if (text) text = digits(&minutes, text, 2, 0, 59);
    if (text) *east = sign * (hours * 3600L + minutes * 60L);
    return text;
}

/* One letter of a format. */
static const char *part(struct tm *tm, long *east, const char *text, char letter) {
    int value = 0;
    const char *end = NULL;
    switch (letter) {
    case 'Y': end = digits(&value, text, 4, 0, 9999), tm->tm_year = value - 1900; break;
    case 'y':
        end = digits(&value, text, 2, 0, 99), tm->tm_year = value < 69 ? value + 100 : value;
        break;
    case 'm': end = digits(&value, text, 2, 1, 12), tm->tm_mon = value - 1; break;
    case 'e':
    case 'd': end = digits(&tm->tm_mday, text, 2, 1, 31); break;
    case 'H': end = digits(&tm->tm_hour, text, 2, 0, 23); break;
    case 'M': end = digits(&tm->tm_min, text, 2, 0, 59); break;
    case 'S': end = digits(&tm->tm_sec, text, 2, 0, 60); break;
    case 'B':
    case 'b': end = month(&tm->tm_mon, text); break;
    case 'F': end = basin_date_format_read(tm, east, text, "%Y-%m-%d"); break;
    case 'D': end = basin_date_format_read(tm, east, text, "%m/%d/%y"); break;
    case 'T': end = basin_date_format_read(tm, east, text, "%H:%M:%S"); break;
    case 'z': end = zone(east, text); break;
    case '%': end = *text == '%' ? text + 1 : NULL; break;
    default: break;
    }
    return end;
}

const char *basin_date_format_read(struct tm *tm, long *east, const char *text,
                                   const char *format) {
    for (; text && *format; format++) {
        bool blank = isspace((unsigned char)*format);
        while ((blank || *format == '%') && isspace((unsigned char)*text)) text++;
        if (blank) continue;
        if (*format == '%')
            text = *++format ? part(tm, east, text, *format) : NULL;
        else
            text = *text == *format ? text + 1 : NULL;
    }
    return text;
}
