/* What cells (gaps, labels, numbers, dates) and columns of tables mean; see table.h. */
#define _GNU_SOURCE /* strcasestr */
#include <ctype.h>
#include <inttypes.h>
#include <stddef.h>
#include <strings.h>
#include <time.h>

#include "base/number.h"
#include "base/sort.h"
#include "tasks/common/table/table.h"

static const char *const type_name[BASIN_COLUMN_TYPES] = {
    "dropped", "number", "category", "date",   "id",
    "label",   "split",  "source",   "target", "relation"};

const char *basin_column_type_name(basin_column_type type) { return type_name[type]; }

/* ---- gaps, labels ---- */

/* Whether that is all of the text, in letters of any case, but for blanks around it. */
static bool is_word(const char *text, const char *word) {
    while (isspace((unsigned char)*text)) text++;
    size_t length = strlen(word);
    if (strncasecmp(text, word, length) != 0) return false;
    for (text += length; isspace((unsigned char)*text);) text++;
    return !*text;
}

bool basin_cell_missing(const char *text) {
    static const char *const word[] = {"", "na", "n/a", "nan", "null", "none", "?", NULL};
    for (const char *const *w = word; *w; w++)
        if (is_word(text, *w)) return true;
    return false;
}

bool basin_cell_number(double *value, const char *text) {
    char *end;
    while (isspace((unsigned char)*text)) text++;
    /* strtod also knows words and hexadecimals */
    if (!isdigit((unsigned char)*text) && *text != '-' && *text != '+' && *text != '.')
        return false;
    *value = basin_real_read(text, &end);
    while (isspace((unsigned char)*end)) end++;
    return end != text && !*end && !strpbrk(text, "xXnN");
}

bool basin_cell_label(int32_t *label, const char *text) {
    static const struct {
        const char *text;
        int32_t label;
    } word[] = {{"true", 1}, {"yes", 1}, {"false", 0}, {"no", 0}, {"unknown", -1}};
    double value;
    if (basin_cell_missing(text)) return *label = -1, true;
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        if (is_word(text, word[i].text)) return *label = word[i].label, true;
    if (!basin_cell_number(&value, text) || value != floor(value) || value < -1 ||
        value > INT16_MAX)
        return false;
    *label = (int32_t)value;
    return true;
}

/* ---- numbers as people write them ---- */

/* A piece of a cell: what is left when signs and currencies are taken off. */
typedef struct span {
    const char *at, *end;
} span;

static const char *const blanks[] = {" ", "\t", "\xc2\xa0", "\xe2\x80\xaf", "\xe2\x80\x89", NULL};
static const char *const groups[] = {
    "'", "\xe2\x80\x99", "_", " ", "\xc2\xa0", "\xe2\x80\xaf", "\xe2\x80\x89", NULL};
static const char *const minuses[] = {"-", "\xe2\x88\x92", NULL};
/* Longer ones first: "US$" ends as "$" does. */
static const char *const currencies[] = {
    "US$", "R$",  "A$",  "C$",  "$",   "€",   "£",   "¥",   "₹",   "₽", "₩",   "₪",
    "₫",   "₺",   "₴",   "₦",   "฿",   "₿", "kr",  "zł",  "USD", "EUR", "GBP", "JPY",
    "CHF", "CNY", "INR", "BRL", "RUB", "KRW", "CAD", "AUD", "NZD", "SEK", "NOK", "DKK",
    "PLN", "CZK", "HUF", "TRY", "MXN", "ZAR", "SGD", "HKD", "THB", "IDR", "ILS", "AED",
    "SAR", "UAH", "VND", "PHP", "MYR", "RON", "BGN", "COP", "CLP", "ARS", "PEN", "EGP",
    "NGN", "KES", "PKR", "BDT", "TWD", "BTC", "ETH", NULL};

/* Takes one of the texts off the front or the back; which one, or NULL. */
static const char *strip(span *s, const char *const *text, bool front) {
    for (; *text; text++) {
        size_t length = strlen(*text);
        if ((size_t)(s->end - s->at) < length) continue;
        if (memcmp(front ? s->at : s->end - length, *text, length) != 0) continue;
        if (front)
            s->at += length;
        else
            s->end -= length;
        return *text;
    }
    return NULL;
}

/* Signs, brackets, currencies and percents around the digits, each at most once. */
static bool strip_marks(span *s, basin_written *w, bool *negative) {
    static const char *const plus[] = {"+", NULL}, *const percent[] = {"%", NULL};
    static const char *const open[] = {"(", NULL}, *const close[] = {")", NULL};
    bool signs = false, bracket = false;
    for (;;) {
        const char *currency = NULL;
        while (strip(s, blanks, true)) continue;
        while (strip(s, blanks, false)) continue;
        if (!signs && (strip(s, minuses, true) || strip(s, minuses, false)))
            *negative = signs = true;
        else if (!signs && strip(s, plus, true))
            signs = true;
        else if (!bracket && !signs && strip(s, open, true)) {
            if (!strip(s, close, false)) return false;
            bracket = signs = *negative = true;
        } else if (!(w->marks & BASIN_MARK_PERCENT) && strip(s, percent, false))
            w->marks |= BASIN_MARK_PERCENT;
        else if (!w->currency && ((currency = strip(s, currencies, true)) ||
                                  (currency = strip(s, currencies, false))))
            w->currency = currency, w->marks |= BASIN_MARK_CURRENCY;
        else
            return true;
    }
}

/* Digits in groups, as far as they go. */
typedef struct body {
    char digit[64];
    int digits;
    int first, last;   /* digits of the first group and of the last */
    const char *group; /* what parts the groups; NULL: nothing yet */
    bool short_group;  /* one of two digits, as 12,34,567 has */
} body;

/* The whole part: groups of three digits after the first, or of two before the last. */
static bool read_groups(body *b, span *s, char decimal) {
    const char *const plain[] = {decimal == '.' ? "," : ".", NULL};
    for (b->last = 0; s->at < s->end && *s->at != decimal && b->digits < 40;) {
        if (isdigit((unsigned char)*s->at)) {
            b->digit[b->digits++] = *s->at++;
            b->last++;
            continue;
        }
        const char *group = strip(s, plain, true); /* the mark between groups */
        if (!group) group = strip(s, groups, true);
        if (!group) break;
        if ((b->group && strcmp(b->group, group) != 0) || b->last == 0) return false;
        if (!b->group) b->first = b->last;
        if (b->group && b->last != 3) b->short_group = true;
        if (b->group && b->last != 3 && b->last != 2) return false;
        b->group = group;
        b->last = 0;
    }
    if (!b->group) return true;
    bool two = b->short_group && strcmp(b->group, ",") != 0;
    return b->last == 3 && b->first <= 3 && b->digit[0] != '0' && !two;
}

/* What follows the decimal mark, and an exponent. */
static bool read_rest(body *b, span *s, char decimal) {
    bool fraction = s->at < s->end && *s->at == decimal;
    if (fraction) {
        s->at++;
        b->digit[b->digits++] = '.';
    }
    while (s->at < s->end && b->digits < 60) {
        bool exponent = !b->group && (*s->at == 'e' || *s->at == 'E' || *s->at == '-');
        if (!isdigit((unsigned char)*s->at) && !(exponent && b->digits)) return false;
        b->digit[b->digits++] = *s->at++;
    }
    b->digit[b->digits] = 0;
    return s->at == s->end;
}

static bool read_body(double *value, unsigned *marks, span s, char decimal) {
    body b = {0};
    char *end;
    if (!read_groups(&b, &s, decimal) || !read_rest(&b, &s, decimal)) return false;
    if (b.digits == 0 || !strpbrk(b.digit, "0123456789")) return false;
    *value = basin_real_read(b.digit, &end);
    if (b.group) *marks |= BASIN_MARK_GROUPS;
    return !*end;
}

bool basin_cell_written(basin_written *number, const char *text) {
    span s = {text, text + strlen(text)};
    bool negative = false;
    *number = (basin_written){0};
    if (!strip_marks(&s, number, &negative)) return false;
    unsigned marks[BASIN_DECIMALS] = {0};
    for (int d = 0; d < BASIN_DECIMALS; d++) {
        number->valid[d] = read_body(&number->value[d], &marks[d], s, d ? ',' : '.');
        if (negative) number->value[d] = -number->value[d];
    }
    number->marks |= number->valid[0] ? marks[0] : marks[1];
    return number->valid[0] || number->valid[1];
}

/* ---- dates and times as days since 1970-01-01 ---- */

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

/* A digit n of the pattern is a number of n digits, other characters match themselves. */
static bool scan(int *value, const char **text, const char *pattern) {
    const char *at = *text;
    for (; *pattern; pattern++) {
        if (!isdigit((unsigned char)*pattern)) {
            if (*at++ != *pattern) return false;
            continue;
        }
        *value = 0;
        for (int left = *pattern - '0'; left > 0; left--, at++) {
            if (!isdigit((unsigned char)*at)) return false;
            *value = *value * 10 + (*at - '0');
        }
        value++;
    }
    *text = at;
    return true;
}

/* "08:30", "08:30:15.25" (60: a leap second) as a part of a day, less a zone: "Z", "-0530". */
static bool read_time(double *part, const char **text) {
    int time[3] = {0}, zone[2] = {0};
    double fraction = 0, unit = 1, sign = 1;
    if (!scan(time, text, "2:2")) return false;
    if (**text == ':' && !scan(time + 2, text, ":2")) return false;
    if (**text == '.' || **text == ',')
        for (++*text; isdigit((unsigned char)**text); ++*text)
            fraction += (unit /= 10) * (**text - '0');
    if (**text == ' ') ++*text;
    if (**text == 'Z' || **text == 'z') {
        ++*text;
    } else if (**text) {
        if (**text != '+' && **text != '-') return false;
        sign = *(*text)++ == '-' ? -1 : 1;
        if (!scan(zone, text, "2")) return false;
        if (**text == ':') ++*text;
        if (**text && !scan(zone + 1, text, "2")) return false;
    }
    *part = (time[0] * 3600 + time[1] * 60 + time[2] + fraction) / 86400;
    *part -= sign * (zone[0] * 60 + zone[1]) / 1440;
    return time[0] < 24 && time[1] < 60 && time[2] <= 60 && zone[0] < 24 && zone[1] < 60;
}

static bool read_iso(double *days, const char *text) {
    int date[3];
    double part = 0;
    while (isspace((unsigned char)*text)) text++;
    if (!scan(date, &text, "4-2-2") && !scan(date, &text, "4/2/2")) return false;
    if (date[1] < 1 || date[1] > 12 || date[2] < 1 || date[2] > days_in(date[0], date[1]))
        return false;
    if (*text == 'T' || *text == 't' || (*text == ' ' && isdigit((unsigned char)text[1]))) {
        text++;
        if (!read_time(&part, &text)) return false;
    }
    while (isspace((unsigned char)*text)) text++;
    *days = (double)days_of(date[0], date[1], date[2]) + part;
    return !*text;
}

bool basin_cell_date(double *days, const char *text, const char *format) {
    if (!format) return read_iso(days, text);
    struct tm tm = {.tm_mday = 1};
    const char *end = strptime(text, format, &tm);
    while (end && isspace((unsigned char)*end)) end++;
    if (!end || *end || tm.tm_year < -900 ||
        tm.tm_mday > days_in(tm.tm_year + INT64_C(1900), tm.tm_mon + 1))
        return false;
    double seconds =
        (double)tm.tm_hour * 3600 + (double)tm.tm_min * 60 + tm.tm_sec - (double)tm.tm_gmtoff;
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

/* ---- columns: seeing ---- */

basin_status basin_column_know(basin_column *c, const basin_schema_column *known,
                               basin_error *error) {
    int32_t number;
    c->known = c->feature = true;
    c->type = known->type;
    c->comma = known->comma;
    c->first = known->first;
    for (int64_t i = 0; i < known->value.count; i++)
        BASIN_TRY(basin_dictionary_add(&c->category, &number,
                                       known->value.text + known->value.at[i], error));
    return BASIN_OK;
}

static void see_reading(basin_reading *r, bool can, double value, const basin_table_rows *rows,
                        const char *text) {
    if (can) {
        bool finite = isfinite((float)value);
        r->cells++;
        r->finite += finite;
        if (finite) basin_sum_add(r->sum, value);
    } else if (!r->odd_line) {
        r->odd_line = rows->line;
        snprintf(r->odd, sizeof r->odd, "%.*s", (int)sizeof r->odd - 1, text);
    }
}

/* A format adds to ISO 8601, which another column may have. */
static bool read_day(double *days, const char *text, const char *format) {
    return basin_cell_date(days, text, format) || (format && basin_cell_date(days, text, NULL));
}

/* A date of the column's kind, whether the schema or the cells decided it. */
static bool read_date(double *days, basin_cell cell, const char *format) {
    return (cell.exact && basin_cell_date(days, cell.text, NULL)) ||
           read_day(days, cell.text, format) || basin_cell_epoch(days, cell.text);
}

static bool read_number(double *value, unsigned *marks, bool comma, basin_cell cell) {
    basin_written w;
    if ((!comma || cell.exact) && basin_cell_number(value, cell.text)) return true;
    if (!basin_cell_written(&w, cell.text) || !w.valid[comma]) return false;
    *value = w.value[comma];
    *marks |= w.marks;
    return true;
}

/* The decimal mark of a settled column: that of the file, where its cells say it. */
static bool has_comma(const basin_column *c, const basin_column_rules *rules) {
    return c->known && rules->mark >= 0 ? rules->mark == BASIN_DECIMAL_COMMA : c->comma;
}

static basin_status see_known(basin_column *c, const basin_table_rows *rows, basin_cell cell,
                              const basin_column_rules *rules, basin_error *error) {
    double value;
    const char *text = cell.text;
    bool good = true, comma = has_comma(c, rules);
    if (c->type == BASIN_COLUMN_CATEGORY && basin_dictionary_find(&c->category, text) < 0) {
        if (c->other++ == 0) snprintf(c->unseen, sizeof c->unseen, "%.39s", text);
    }
    if (c->type == BASIN_COLUMN_NUMBER) good = read_number(&value, &c->marks, comma, cell);
    if (c->type == BASIN_COLUMN_DATE) good = read_date(&value, cell, rules->date_format);
    if (good) return BASIN_OK;
    bool contrary = c->type == BASIN_COLUMN_NUMBER && read_number(&value, &c->marks, !comma, cell);
    c->contrary = contrary && rules->mark < 0;
    return basin_table_rows_fail(rows, error,
                                 ": column '%s' holds '%.40s', expected a %s as in %s%s", c->name,
                                 text, basin_column_type_name(c->type), rules->origin,
                                 contrary ? ", with the decimal mark of the file's other cells"
                                 : c->type == BASIN_COLUMN_DATE ? ", or the option date_format"
                                                                : "");
}

/* Whether all cells before this one could be read so; one that could not decides it. */
static bool still(const basin_column *c, int reading) {
    return c->as[reading].cells == c->cells - 1;
}

static void see_written(basin_column *c, const basin_table_rows *rows, const char *text) {
    basin_written w;
    (void)basin_cell_written(&w, text);
    for (int d = 0; d < BASIN_DECIMALS; d++)
        see_reading(&c->as[BASIN_AS_POINT + d], w.valid[d], w.value[d], rows, text);
    if (w.valid[0] && w.valid[1] && w.value[0] != w.value[1]) c->ambiguous = true;
    c->marks |= w.marks;
    if (c->currency && w.currency && strcmp(c->currency, w.currency) != 0) c->currencies = true;
    if (w.currency) c->currency = w.currency;
}

/* A plain number is no other where a cell before it ruled that out: most cells end there. */
static void see_readings(basin_column *c, const basin_table_rows *rows, basin_cell cell,
                         const char *date_format) {
    double value = 0, days = 0;
    const char *text = cell.text;
    bool plain = basin_cell_number(&value, text);
    bool comma = cell.exact; /* a number, whatever the decimal mark of texts beside it */
    if (plain && (comma || !still(c, BASIN_AS_COMMA)))
        for (int d = 0; d <= comma; d++)
            see_reading(&c->as[BASIN_AS_POINT + d], true, value, rows, text);
    else
        see_written(c, rows, text);
    if (still(c, BASIN_AS_EPOCH))
        see_reading(&c->as[BASIN_AS_EPOCH], basin_cell_epoch(&days, text), days, rows, text);
    bool date =
        (!plain || (date_format && still(c, BASIN_AS_DATE))) && read_day(&days, text, date_format);
    see_reading(&c->as[BASIN_AS_DATE], date, days, rows, text);
}

basin_status basin_column_see(basin_column *c, const basin_table_rows *rows, basin_cell cell,
                              const basin_column_rules *rules, basin_error *error) {
    int32_t number;
    if (!c->feature || basin_cell_missing(cell.text)) return BASIN_OK;
    c->cells++;
    if (c->known) return see_known(c, rows, cell, rules, error);
    see_readings(c, rows, cell, rules->date_format);
    if (c->many) return BASIN_OK;
    BASIN_TRY(basin_dictionary_add(&c->category, &number, cell.text, error));
    if (c->category.names.count > rules->max_values) c->many = true;
    return BASIN_OK;
}

/* ---- settling ---- */

static bool all_as(const basin_column *c, int reading) { return c->as[reading].cells == c->cells; }

int basin_column_mark(const basin_column *c) {
    bool point = all_as(c, BASIN_AS_POINT), comma = all_as(c, BASIN_AS_COMMA);
    if (!c->feature || c->known || !c->cells || point == comma) return -1;
    return comma ? BASIN_DECIMAL_COMMA : BASIN_DECIMAL_POINT;
}

/* Categories in alphabetical order, so that the order of rows does not matter. */
static basin_status rank_categories(basin_column *c, basin_names *names, basin_error *error) {
    size_t count = (size_t)c->category.names.count;
    BASIN_FREE_AT_EXIT const char **sorted = NULL;
    BASIN_TRY(BASIN_NEW_RAW(&sorted, count, "categories", error));
    BASIN_TRY(BASIN_NEW_RAW(&c->rank, count, "categories", error));
    for (size_t i = 0; i < count; i++) sorted[i] = c->category.names.text + c->category.names.at[i];
    qsort(sorted, count, sizeof *sorted, basin_compare_text);
    for (size_t i = 0; i < count; i++) {
        c->rank[basin_dictionary_find(&c->category, sorted[i])] = (int32_t)i;
        BASIN_TRY(basin_names_add(names, sorted[i], error));
    }
    return BASIN_OK;
}

bool basin_column_sounds_like_time(const char *name) {
    size_t length = strlen(name);
    const char *end = name + (length < 3 ? length : length - 3);
    return strcasestr(name, "time") || strcasestr(name, "date") || !strcasecmp(end, "_at") ||
           !strcasecmp(end, "_ts") || !strcasecmp(name, "ts");
}

/* The reading that all cells allow, the plainest first; -1: none. Where they are numbers with
 * either decimal mark, other columns of the file decide. */
static int common_reading(const basin_column *c, const basin_column_rules *rules) {
    if (rules->date_format && all_as(c, BASIN_AS_DATE)) return BASIN_AS_DATE;
    if (all_as(c, BASIN_AS_EPOCH) && basin_column_sounds_like_time(c->name)) return BASIN_AS_EPOCH;
    bool comma = c->ambiguous && rules->mark == BASIN_DECIMAL_COMMA;
    for (int r = comma ? BASIN_AS_COMMA : BASIN_AS_POINT; r < BASIN_AS_EPOCH; r++)
        if (all_as(c, r)) return r;
    return -1;
}

/* A column that is mostly numbers, or dates, and has something else in it is a mistake. */
static basin_status check_odd(const basin_column *c, const char *path, basin_error *error) {
    static const char *const expected[] = {"a number", "a number", "a date"};
    int best = BASIN_AS_POINT;
    for (int r = BASIN_AS_COMMA; r <= BASIN_AS_DATE; r++)
        if (c->as[r].cells > c->as[best].cells) best = r;
    const basin_reading *r = &c->as[best];
    if (2 * r->cells <= c->cells) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE,
                      "%s: line %" PRId64 ": column '%s' holds '%s', expected %s as in the other "
                      "rows (or leave the column out with drop)",
                      path, r->odd_line, c->name, r->odd, expected[best]);
}

static basin_status settle_type(basin_column *c, basin_schema_column *to, const char *path,
                                const basin_column_rules *rules, basin_error *error) {
    int reading = c->feature && c->cells ? common_reading(c, rules) : -1;
    if (!c->feature || !c->cells) return BASIN_OK;
    if (reading < 0) {
        BASIN_TRY(check_odd(c, path, error));
        if (c->many) return BASIN_OK;
        c->type = to->type = BASIN_COLUMN_CATEGORY;
        return rank_categories(c, &to->value, error);
    }
    bool date = reading == BASIN_AS_DATE || reading == BASIN_AS_EPOCH;
    c->type = to->type = date ? BASIN_COLUMN_DATE : BASIN_COLUMN_NUMBER;
    c->epoch = reading == BASIN_AS_EPOCH;
    c->comma = to->comma = reading == BASIN_AS_COMMA;
    const basin_reading *r = &c->as[reading];
    to->mean = r->finite ? (r->sum[0] + r->sum[1]) / (double)r->finite : 0;
    return BASIN_OK;
}

basin_status basin_column_settle(basin_schema_column *settled, basin_column *c, const char *path,
                                 const basin_column_rules *rules, basin_error *error) {
    *settled = (basin_schema_column){.name = c->name, .type = c->type, .mean = NAN};
    return settle_type(c, settled, path, rules, error);
}

/* ---- filling ---- */

bool basin_column_is_feature(basin_column_type type) {
    return type == BASIN_COLUMN_NUMBER || type == BASIN_COLUMN_CATEGORY ||
           type == BASIN_COLUMN_DATE;
}

bool basin_column_read(double *value, const basin_column *c, basin_cell cell,
                       const basin_column_rules *rules) {
    unsigned marks = 0;
    if (basin_cell_missing(cell.text)) return false;
    if (c->type == BASIN_COLUMN_DATE) return read_date(value, cell, rules->date_format);
    return c->type == BASIN_COLUMN_NUMBER && read_number(value, &marks, has_comma(c, rules), cell);
}

void basin_column_fill(float *x, const basin_column *c, basin_cell cell,
                       const basin_column_rules *rules) {
    double value;
    const char *text = cell.text;
    if (!basin_column_is_feature(c->type)) return;
    if (c->type == BASIN_COLUMN_CATEGORY) {
        int32_t at = basin_dictionary_find(&c->category, text);
        for (int64_t i = 0; i < c->category.names.count && !basin_cell_missing(text); i++)
            x[c->first + i] = 0; /* the row replaces another */
        if (at >= 0) x[c->first + (c->rank ? c->rank[at] : at)] = 1;
    } else if (basin_column_read(&value, c, cell, rules)) {
        x[c->first] = (float)value;
    }
}
