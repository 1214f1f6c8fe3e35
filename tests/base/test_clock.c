/* Days as text. */
#include "base/clock.h"
#include "support/test.h"

TEST(days_have_their_names) {
    static const struct {
        int64_t seconds;
        const char *day;
    } known[] = {
        {0, "1970-01-01"},          {86399, "1970-01-01"},      {86400, "1970-01-02"},
        {951782400, "2000-02-29"},  {951868800, "2000-03-01"},  {1709164800, "2024-02-29"},
        {1735689599, "2024-12-31"}, {1735689600, "2025-01-01"}, {4107542400, "2100-03-01"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char text[BASIN_DAY_TEXT];
        assert_string_equal(basin_day_print(text, known[i].seconds), known[i].day);
    }
}
