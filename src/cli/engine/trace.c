/* The trace of a descent in its four forms; see trace.h. */
#include "cli/engine/trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "cli/table.h"
#include "io/file.h"
#include "view/plot.h"

static double energy_at(const basin_trace *trace, int step, int part, int64_t sample) {
    const basin_descent_result *r = trace->result;
    return r->energy[((int64_t)step * r->parts + part) * r->samples + sample];
}

double basin_trace_part(const basin_trace *trace, int step, int part) {
    double sum = 0;
    for (int64_t i = 0; i < trace->result->samples; i++) sum += energy_at(trace, step, part, i);
    return sum;
}

int basin_trace_broken(const basin_trace *trace) {
    for (int t = 0; t <= trace->result->steps; t++)
        if (!isfinite(basin_descent_total(trace->result, t))) return t;
    return -1;
}

int basin_trace_risen(const basin_trace *trace) {
    for (int t = 0; t < trace->result->steps; t++) {
        double before = basin_descent_total(trace->result, t);
        double after = basin_descent_total(trace->result, t + 1);
        /* sums of floats come back with their rounding */
        if (after > before + 1e-6 * fabs(before)) return t;
    }
    return -1;
}

bool basin_trace_print(const basin_trace *trace, FILE *file) {
    const basin_descent_result *r = trace->result;
    char layout[BASIN_MAX_PARTS + 4] = "rr";
    for (int p = 0; p <= r->parts; p++) layout[2 + p] = 'r', layout[3 + p] = 0;
    basin_table rows = {.layout = layout};
    basin_table_add(&rows, "step");
    basin_table_add(&rows, "energy");
    for (int p = 0; p < r->parts; p++) basin_table_add(&rows, "%s", trace->part[p]);
    basin_table_add(&rows, "change of g");
    for (int t = 0; t <= r->steps; t++) {
        basin_table_add(&rows, "%d", t);
        basin_table_add(&rows, "%.6f", basin_descent_total(r, t));
        for (int p = 0; p < r->parts; p++)
            basin_table_add(&rows, "%.6f", basin_trace_part(trace, t, p));
        if (t < r->steps)
            basin_table_add(&rows, "%.3e", r->change[t]);
        else
            basin_table_add(&rows, "%s", "");
    }
    return basin_table_print(&rows, file, 0);
}

void basin_trace_json(const basin_trace *trace, basin_json *json) {
    const basin_descent_result *r = trace->result;
    basin_json_integer(json, "steps", r->steps);
    basin_json_integer(json, "samples", r->samples);
    basin_json_boolean(json, "converged", r->converged);
    basin_json_integer(json, "halvings", r->halvings);
    basin_json_array(json, "trace");
    for (int t = 0; t <= r->steps; t++) {
        basin_json_object(json, NULL);
        basin_json_integer(json, "step", t);
        basin_json_number(json, "energy", basin_descent_total(r, t));
        for (int p = 0; p < r->parts; p++)
            basin_json_number(json, trace->part[p], basin_trace_part(trace, t, p));
        basin_json_number(json, "change", t < r->steps ? r->change[t] : NAN);
        basin_json_end(json);
    }
    basin_json_end(json);
}

static void csv_row(FILE *file, const basin_trace *trace, int t, int64_t sample) {
    const basin_descent_result *r = trace->result;
    char text[BASIN_NUMBER_TEXT];
    double total = 0;
    for (int p = 0; p < r->parts; p++) total += energy_at(trace, t, p, sample);
    fprintf(file, "%d", t);
    if (r->samples > 1) fprintf(file, ",%lld", (long long)sample);
    fprintf(file, ",%s", basin_number_print(text, total));
    for (int p = 0; p < r->parts; p++)
        fprintf(file, ",%s", basin_number_print(text, energy_at(trace, t, p, sample)));
    fprintf(file, ",%s\n", t < r->steps ? basin_number_print(text, r->change[t]) : "");
}

basin_status basin_trace_csv(const basin_trace *trace, const char *path, basin_error *error) {
    const basin_descent_result *r = trace->result;
    basin_writer writer;
    basin_status status = basin_writer_create(&writer, path, error);
    if (status) return status;
    fputs(r->samples > 1 ? "step,sample,energy" : "step,energy", writer.file);
    for (int p = 0; p < r->parts; p++) fprintf(writer.file, ",%s", trace->part[p]);
    fputs(",change\n", writer.file);
    for (int t = 0; t <= r->steps; t++)
        for (int64_t i = 0; i < r->samples; i++) csv_row(writer.file, trace, t, i);
    return basin_writer_commit(&writer, error);
}

basin_status basin_trace_plot(const basin_trace *trace, const char *path, const char *title,
                              basin_error *error) {
    const basin_descent_result *r = trace->result;
    size_t points = (size_t)r->steps + 1, lines = r->parts > 1 ? (size_t)r->parts + 1 : 1;
    basin_plot_line line[BASIN_MAX_PARTS + 1];
    basin_writer writer;
    double *number = basin_array_new(points * (lines + 1), sizeof *number);
    if (!number) return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory for the plot", path);
    for (size_t t = 0; t < points; t++) {
        number[t] = (double)t;
        number[points + t] = basin_descent_total(r, (int)t);
        for (size_t p = 1; p < lines; p++)
            number[(p + 1) * points + t] = basin_trace_part(trace, (int)t, (int)p - 1);
    }
    for (size_t p = 0; p < lines; p++) {
        const char *name = lines == 1 ? trace->part[0] : p == 0 ? "energy" : trace->part[p - 1];
        line[p] = (basin_plot_line){
            .name = name, .x = number, .y = number + (p + 1) * points, .count = (int64_t)points};
    }
    basin_status status = basin_writer_create(&writer, path, error);
    if (!status) {
        basin_plot plot = {.title = title,
                           .x_label = "step",
                           .y_label = "energy",
                           .line = line,
                           .lines = (int)lines};
        basin_plot_write(writer.file, &plot);
        status = basin_writer_commit(&writer, error);
    }
    free(number);
    return status;
}
