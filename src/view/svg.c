/* Parts of pictures; see svg.h. */
#include "view/svg.h"

#include <math.h>

#include "view/markup.h"

void basin_svg_colour(FILE *file, double score) {
    static const double stop[3][3] = {{59, 111, 182}, {200, 200, 200}, {196, 54, 42}};
    double s = score < 0 || isnan(score) ? 0 : score > 1 ? 1 : score;
    int low = s < 0.5 ? 0 : 1;
    double t = 2 * s - low;
    int c[3];
    for (int i = 0; i < 3; i++) c[i] = (int)lround(stop[low][i] * (1 - t) + stop[low + 1][i] * t);
    fprintf(file, "#%02x%02x%02x", c[0], c[1], c[2]);
}

void basin_svg_head(FILE *file, int width, int height, const char *title, const char *subtitle) {
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n",
            width, height, width, height);
    fputs("<style>.p{fill:#fff}.t{fill:#222}.m{fill:#666}.e{stroke:#777}.n{stroke:#fff}"
          "@media(prefers-color-scheme:dark){.p{fill:#16181c}.t{fill:#eee}.m{fill:#aaa}"
          ".e{stroke:#999}.n{stroke:#16181c}}</style>\n",
          file);
    fprintf(file, "<rect class=\"p\" width=\"%d\" height=\"%d\"/>\n", width, height);
    fputs("<text class=\"t\" x=\"24\" y=\"32\" font-size=\"17\" font-weight=\"bold\">", file);
    basin_markup_text(file, title, 70);
    fputs("</text>\n", file);
    if (!subtitle) return;
    fputs("<text class=\"m\" x=\"24\" y=\"53\">", file);
    basin_markup_text(file, subtitle, 100);
    fputs("</text>\n", file);
}

void basin_svg_scale(FILE *file, int y) {
    fputs("<g>", file);
    for (int i = 0; i < 60; i++) {
        fprintf(file, "<rect x=\"%d\" y=\"%d\" width=\"3\" height=\"10\" fill=\"", 24 + 2 * i, y);
        basin_svg_colour(file, i / 59.0);
        fputs("\"/>", file);
    }
    fputs("</g>\n", file);
}
