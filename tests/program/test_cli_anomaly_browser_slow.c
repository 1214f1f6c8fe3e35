/* The page of basin anomaly report in a real browser: plots are drawn, alerts open and close,
 * nothing overflows a phone's width, links lead somewhere, the console stays empty; light and dark.
 * Skipped where there is no chromium. */
#include "program/accounts.h"
#include "program/browser.h"

static const char check[] =
    "<script>\n"
    "const wrong = [], say = (good, what) => { if (!good) wrong.push(what) };\n"
    "const drawn = e => e.getClientRects().length > 0;\n"
    "(() => {\n"
    "  const plots = Array.from(document.querySelectorAll('.plot svg')).filter(drawn);\n"
    "  say(plots.length === 4, 'plots ' + plots.length);\n"
    "  for (const p of plots) say(p.getBoundingClientRect().width > 200, 'a small plot');\n"
    "  const alerts = Array.from(document.querySelectorAll('.items > details'));\n"
    "  say(alerts.length === 20, 'alerts ' + alerts.length);\n"
    "  say(alerts.filter(a => a.open).length === 4, 'open at first');\n"
    "  alerts[9].querySelector('summary').click();\n"
    "  say(alerts[9].open && drawn(alerts[9].querySelector('table')), 'does not open');\n"
    "  for (const a of alerts) a.open = true;\n"
    "  for (const a of document.querySelectorAll('nav a'))\n"
    "    say(document.querySelector(a.getAttribute('href')), 'no ' + a.textContent);\n"
    "  say(document.documentElement.scrollWidth <= innerWidth, 'wider than the page: '\n"
    "    + document.documentElement.scrollWidth + ' of ' + innerWidth);\n"
    "  const columns = getComputedStyle(document.querySelector('main')).gridTemplateColumns;\n"
    "  say(columns.split(' ').length === (innerWidth > 1100 ? 2 : 1), 'columns ' + columns);\n"
    "  parent.postMessage(wrong.join('; ') || 'all is well', '*');\n"
    "})();\n"
    "</script>\n";

TEST(a_report_works_in_a_browser) {
    static const int width[] = {320, 390, 1600};
    static const char *const script[] = {check, NULL};
    if (!browser_there()) skip();
    run_ok(state, "anomaly train accounts.csv transfers.csv --epochs 8 --members 1 "
                  "--trees 2 --threads 1 -q -o m.safetensors");
    run_ok(state, "anomaly report m.safetensors accounts.csv transfers.csv -q -o page.html");
    browser_open(state, "page.html");
    browser_add(state, "page.html", "check.html", script);
    for (int i = 0; i < 3; i++) browser_judge(state, width[i]);
}

int main(void) { return tests_run(make_table, browser_teardown); }
