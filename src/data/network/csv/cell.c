/* Gaps, labels and numbers; see cell.h. Dates are in date.c. */
#include "data/network/csv/cell.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"

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
    if (basin_cell_missing(text)) {
        *label = -1;
        return true;
    }
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        if (is_word(text, word[i].text)) {
            *label = word[i].label;
            return true;
        }
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

static void trim(span *s) {
    while (strip(s, blanks, true)) continue;
    while (strip(s, blanks, false)) continue;
}

/* Signs, brackets, currencies and percents around the digits, each at most once. */
static bool strip_marks(span *s, basin_written *w, bool *negative) {
    static const char *const plus[] = {"+", NULL}, *const percent[] = {"%", NULL};
    static const char *const open[] = {"(", NULL}, *const close[] = {")", NULL};
    bool signs = false, bracket = false;
    for (;;) {
        const char *currency = NULL;
        trim(s);
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

/* The mark between groups at the front, taken off; NULL where there is none. */
static const char *strip_group(span *s, const char *const plain[2]) {
    const char *found = strip(s, plain, true);
    return found ? found : strip(s, groups, true);
}

/* The whole part: groups of three digits behind the first, or of two before the last. */
static bool read_groups(body *b, span *s, char decimal) {
    const char *const plain[] = {decimal == '.' ? "," : ".", NULL};
    for (b->last = 0; s->at < s->end && *s->at != decimal && b->digits < 40;) {
        if (isdigit((unsigned char)*s->at)) {
            b->digit[b->digits++] = *s->at++;
            b->last++;
            continue;
        }
        const char *group = strip_group(s, plain);
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

/* What stands behind the decimal mark, and an exponent. */
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
