/* What GPUs offer to processes that train one model together: sums by kernels of our own, against
 * the host's, and messages by NCCL, as one process alone sends them to itself. Skipped where there
 * is no device; the messages alone where NCCL is absent. */
#include "engine/backend/device.h"
#include "support/cuda.h"

static const basin_collective *table;

enum { COUNT = 100003 }; /* fills no block of threads */

static float number(int64_t i) { return (float)((i * 7919) % 1013) / 1013.0f - 0.5f; }

static float *on_device(float *host, float factor) {
    float *device = cuda->table->alloc(cuda, COUNT * sizeof *device);
    assert_non_null(device);
    for (int64_t i = 0; i < COUNT; i++) host[i] = factor * number(i);
    cuda->table->copy_in(cuda, device, host, COUNT * sizeof *device);
    return device;
}

static void read_back(float *host, const float *device) {
    basin_error error;
    cuda->table->copy_out(cuda, host, device, COUNT * sizeof *host);
    if (cuda->table->wait(cuda, &error)) fail_msg("%s", error.text);
}

TEST(sums_are_those_of_the_host) {
    static float a[COUNT], b[COUNT], found[COUNT];
    float *x = on_device(a, 1), *y = on_device(b, 0.3f);
    table->add(cuda, x, y, COUNT);
    read_back(found, x);
    for (int64_t i = 0; i < COUNT; i++) assert_true(found[i] == a[i] + b[i]);
    table->scale(cuda, x, y, 1.7f, COUNT);
    read_back(found, x);
    for (int64_t i = 0; i < COUNT; i++) assert_true(found[i] == b[i] * 1.7f);
    cuda->table->free(cuda, x);
    cuda->table->free(cuda, y);
}

TEST(a_device_has_a_name) {
    char name[BASIN_COLLECTIVE_NAME], again[BASIN_COLLECTIVE_NAME], none[16] = "";
    table->name(cuda, name);
    table->name(cuda, again);
    assert_memory_equal(name, again, sizeof name);
    assert_memory_not_equal(name, none, sizeof none);
}

/* Two messages at once, which arrive in the order in which they were sent, behind what was queued
 * before and ahead of what is queued after. */
TEST(nccl_brings_messages) {
    static float sent[COUNT], found[COUNT];
    char id[BASIN_COLLECTIVE_ID];
    basin_error error;
    if (table->invite(cuda, id, &error)) {
        print_message("%s\n", error.text);
        skip();
    }
    if (table->join(cuda, id, 0, 1, &error)) fail_msg("%s", error.text);
    float *x = on_device(sent, 1), *y = on_device(found, 0);
    int64_t half = COUNT / 2;
    table->scale(cuda, x, x, 2, COUNT);
    basin_collective_part send[] = {{x, half, 0}, {x + half, COUNT - half, 0}};
    basin_collective_part receive[] = {{y, half, 0}, {y + half, COUNT - half, 0}};
    if (table->exchange(cuda, send, 2, receive, 2, &error)) fail_msg("%s", error.text);
    table->add(cuda, y, x, COUNT);
    read_back(found, y);
    for (int64_t i = 0; i < COUNT; i++) assert_true(found[i] == 4 * sent[i]);
    cuda->table->free(cuda, x);
    cuda->table->free(cuda, y);
}

int main(void) {
    cuda_open();
    table = basin_backend_collective(cuda);
    return cuda_close(table ? tests_run(NULL, NULL) : 1);
}
