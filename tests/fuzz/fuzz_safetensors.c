/* Fuzz target: any bytes as a safetensors file. */
#include "engine/io/bundle.h"
#include "fuzz/fuzz.h"
#include "fuzz/touch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    basin_bundle *bundle;
    basin_error error;
    basin_status status = basin_safetensors_parse(&bundle, data, size, "fuzz", &error);
    outcome_check(bundle, status, &error);
    basin_bundle_free(bundle);
    return 0;
}

static size_t file_make(uint8_t out[FUZZ_ROOM], const char *header, size_t data) {
    size_t length = strlen(header);
    memset(out, 0, 8 + length + data);
    out[0] = (uint8_t)length;
    out[1] = (uint8_t)(length >> 8);
    memcpy(out + 8, header, length);
    for (size_t i = 0; i < data; i++) out[8 + length + i] = (uint8_t)(37 * i);
    return 8 + length + data;
}

size_t fuzz_seed(uint8_t out[FUZZ_ROOM], int index) {
    switch (index) {
    case 0: return file_make(out, "{}", 0);
    case 1:
        return file_make(
            out, "{\"wk\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}} ", 24);
    case 2:
        return file_make(out,
                         "{\"__metadata__\":{\"config\":\"{\\\"D\\\": 768}\",\"\\u00e9\":\"\"},"
                         "\"a\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]},"
                         "\"b\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[8,14]},"
                         "\"c\":{\"dtype\":\"I64\",\"shape\":[1,1],\"data_offsets\":[14,22]},"
                         "\"d\":{\"dtype\":\"BOOL\",\"shape\":[0,5],\"data_offsets\":[22,22]},"
                         "\"e\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[24,28]},"
                         "\"f\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[22,24]}}",
                         28);
    case 3:
        return file_make(
            out,
            "{\"x\":{\"dtype\":\"I8\",\"shape\":[1,1,1,1,1,1,1,4],\"data_offsets\":[0,4],"
            "\"other\":[[1.5e3,null],true]},\"y\":{\"dtype\":\"I16\",\"shape\":[2],"
            "\"data_offsets\":[4,8]},\"z\":{\"dtype\":\"I32\",\"shape\":[9007199254740991,"
            "0],\"data_offsets\":[8,8]}}",
            8);
    default: return 0;
    }
}
