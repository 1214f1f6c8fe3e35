/* Cells as people write them: numbers with marks, dates, epochs; and columns that are judged by all
 * of their cells. */
#include <math.h>

#include "support/comma.h"
#include "tasks/common/table/table.h"
#include "tasks/nodes/network/networks.h"

static const double no = NAN;

TEST(reads_numbers_both_ways) {
    const struct {
        const char *text;
        double point, comma;
    } trial[] = {
        {"12", 12, 12},
        {" -1.5e3 ", -1500, no},
        {"3,066.82", 3066.82, no},
        {"3.066,82", no, 3066.82},
        {"12,5", no, 12.5},
        {"12.5", 12.5, no},
        {"1,234", 1234, 1.234},
        {"1.234", 1.234, 1234},
        {"0,123", no, 0.123},
        {"0.123", 0.123, no},
        {"1.234.567", no, 1234567},
        {"12,34,567.8", 1234567.8, no},
        {"1,2345", no, 1.2345},
        {"1'000'000", 1e6, 1e6},
        {"1 000 000", 1e6, 1e6},
        {"1\xc2\xa0"
         "000,5",
         no, 1000.5},
        {"$1,200.50", 1200.5, no},
        {"-$5", -5, -5},
        {"$ -5", -5, -5},
        {"12 EUR", 12, 12},
        {"USD 3", 3, 3},
        {"€ 3,50", no, 3.5},
        {"12.5 %", 12.5, no},
        {"(40)", -40, -40},
        {"($1,000)", -1000, -1},
        {"40-", -40, -40},
        {"\xe2\x88\x92"
         "7",
         -7, -7},
        {"+7", 7, 7},
        {"", no, no},
        {"-", no, no},
        {"$", no, no},
        {"(40", no, no},
        {"4-5", no, no},
        {"12 monkeys", no, no},
        {"1,,2", no, no},
        {"1,234,56", no, no},
        {"1234,567", no, 1234.567},
        {"12%%", no, no},
        {"0x10", no, no},
        {"1e", no, no},
        {"e5", no, no},
        {"nan", no, no},
    };
    for (size_t i = 0; i < sizeof trial / sizeof *trial; i++) {
        basin_written w;
        bool any = basin_cell_written(&w, trial[i].text);
        double wanted[] = {trial[i].point, trial[i].comma};
        assert_int_equal(any, !isnan(wanted[0]) || !isnan(wanted[1]));
        for (int d = 0; d < BASIN_DECIMALS; d++) {
            double found = w.valid[d] ? w.value[d] : NAN;
            if (!(found == wanted[d] || (isnan(found) && isnan(wanted[d]))))
                fail_msg("'%s' read with a decimal %s is %g, wanted %g", trial[i].text,
                         d ? "comma" : "point", found, wanted[d]);
        }
    }
}

TEST(reads_dates) {
    const struct {
        const char *text, *format;
        double days;
    } trial[] = {
        {"1970-01-01", NULL, 0},
        {"2026-11-15", NULL, 20772},
        {"2024/02/29", NULL, 19782},
        {"2023-02-29", NULL, no},
        {"1969-12-31T12:00Z", NULL, -0.5},
        {"2026-11-15T06:00:00+06:00", NULL, 20772},
        {"2026-11-15 18:00:00.000", NULL, 20772.75},
        {"2026-11-15T18:00:00-0600", NULL, 20773},
        {"2026-11-15T25:00", NULL, no},
        {"2026-11-15x", NULL, no},
        {"2026-13-01", NULL, no},
        {"15.11.2026", NULL, no},
        {"15.11.2026", "%d.%m.%Y", 20772},
        {"31.02.2026", "%d.%m.%Y", no},
        {"15.11.26", "%d.%m.%Y", no}, /* the year 26 */
        {"20261115", "%Y%m%d", 20772},
        {"11/15/26 12:00", "%m/%d/%y %H:%M", 20772.5},
    };
    for (size_t i = 0; i < sizeof trial / sizeof *trial; i++) {
        double days = NAN;
        if (!basin_cell_date(&days, trial[i].text, trial[i].format)) days = NAN;
        if (!(fabs(days - trial[i].days) < 1e-9 || (isnan(days) && isnan(trial[i].days))))
            fail_msg("'%s' is day %.10g, wanted %.10g", trial[i].text, days, trial[i].days);
    }
    double days;
    assert_true(basin_cell_epoch(&days, "1794700800") && days == 20772);
    assert_true(basin_cell_epoch(&days, "1794700800000") && days == 20772);
    assert_false(basin_cell_epoch(&days, "1200"));
}

static basin_status read_column(basin_network **n, const basin_network_options *o, const char *name,
                                const char *cells, basin_error *error) {
    char nodes[1000];
    int length = snprintf(nodes, sizeof nodes, "id;%s\n", name), id = 0;
    for (const char *at = cells; *at; at += strcspn(at, "|"), at += *at == '|')
        length += snprintf(nodes + length, sizeof nodes - (size_t)length, "n%d;%.*s\n", id++,
                           (int)strcspn(at, "|"), at);
    basin_csv_source source[] = {{.path = "e", .data = "src,dst\nn0,n1\n", .size = 14},
                                 {.path = "n", .data = nodes, .size = (size_t)length}};
    return basin_network_csv_read(n, source, 2, o, error);
}

/* What a column becomes is decided by all of its cells. */
TEST(columns_are_judged_whole) {
    const struct {
        const char *name, *cells;
        basin_column_type type;
        float last;
        const char *note;
    } trial[] = {
        {"x", "1,234|5", BASIN_COLUMN_NUMBER, 5, "separators, currency or %: x"},
        {"x", "1,234|7|12,5", BASIN_COLUMN_NUMBER, 12.5f, "decimal comma: x"},
        {"x", "1|2|3|$4", BASIN_COLUMN_NUMBER, 4, "separators, currency or %: x"},
        {"x", "$1|EUR 4", BASIN_COLUMN_NUMBER, 4, "several currencies in one column"},
        {"when", "2026-11-15|?|1970-01-03", BASIN_COLUMN_DATE, 2, "days since 1970: when"},
        {"made_at", "1794700800|1794700801000", BASIN_COLUMN_DATE, 20772, "made_at (epoch)"},
        {"amount", "7|1794700800", BASIN_COLUMN_NUMBER, 1794700800, NULL},
        {"x", "1e99|-1e99", BASIN_COLUMN_NUMBER, 0, "gaps filled with zero, and how many: x (2)"},
        {"x", "1|b|c", BASIN_COLUMN_CATEGORY, 1, "one feature per value: x (3)"},
        {"x", "a|b|c|d", BASIN_COLUMN_DROPPED, 0, "columns left out: x (more than 3 values)"},
        {"x", "?|NA", BASIN_COLUMN_DROPPED, 0, "columns left out: x (empty)"},
    };
    for (size_t i = 0; i < sizeof trial / sizeof *trial; i++) {
        basin_network *n;
        basin_network_options o = {.table = &(basin_table_options){.max_categories = 3},
                                   .missing = BASIN_MISSING_ZERO};
        assert_ok(read_column(&n, &o, trial[i].name, trial[i].cells, &failure));
        assert_int_equal(basin_schema_find(&n->schema->nodes, trial[i].name)->type, trial[i].type);
        if (n->features) {
            float last = n->feature[n->nodes * n->features - 1];
            if (fabsf(last - trial[i].last) > 1e-4f) fail_msg("%s: %g", trial[i].cells, last);
        }
        if (trial[i].note && !strstr(n->note, trial[i].note))
            fail_msg("'%s' is not in '%s'", trial[i].note, n->note);
        if (!trial[i].note && n->note) fail_msg("%s", n->note);
        basin_network_close(n);
    }
}

TEST(what_does_not_go_together_is_named) {
    const struct {
        const char *cells, *wanted;
    } trial[] = {
        {"1.5|2.5|3,5",
         "n: line 4: column 'x' holds '3,5', expected a number as in the other rows"},
        {"1,5|2,5|3.5",
         "n: line 4: column 'x' holds '3.5', expected a number as in the other rows"},
        {"2026-01-01|2026-01-02|7", "n: line 4: column 'x' holds '7', expected a date as"},
        {"2026-01-01|2026-01-02|soon", "n: line 4: column 'x' holds 'soon', expected a date as"},
    };
    for (size_t i = 0; i < sizeof trial / sizeof *trial; i++) {
        basin_network *n;
        assert_failed(read_column(&n, NULL, "x", trial[i].cells, &failure), trial[i].wanted);
    }
}

/* The program that calls may write 1,5 itself: tables are read as before. */
TEST(locales_change_nothing) {
    if (!comma_set(*state)) skip();
    reads_numbers_both_ways(state);
    setlocale(LC_NUMERIC, "C");
}

int main(void) { return tests_run(folder_new, folder_remove); }
