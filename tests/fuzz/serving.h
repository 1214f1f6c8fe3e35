/* A base of three accounts, as the server's fuzz targets see it. */
#ifndef TESTS_FUZZ_SERVING_H
#define TESTS_FUZZ_SERVING_H

#define SERVING_NODES                                                                              \
    "id,balance,country,opened,label\na,1.5,DE,2024-01-01,0\nb,2,FR,2024-02-01,1\n"                \
    "c,3,DE,2024-03-05,0\nd,4,FR,2024-04-01,1\n"
#define SERVING_EDGES                                                                              \
    "source,target,amount,time,kind\na,b,1,2024-05-01,card\nb,c,2,2024-05-02,wire\n"               \
    "c,d,3,2024-05-03,card\n"
/* Additions: numbers, texts of numbers, dates, gaps, several rows. */
#define SERVING_ADDITION                                                                           \
    "{\"accounts\":[{\"id\":\"e\",\"balance\":\"2.127,34\",\"country\":\"DE\",\"opened\":"         \
    "\"2024-06-01T08:30:00\"},{\"id\":\"7\",\"balance\":null}],\"edges\":[{\"source\":\"e\","      \
    "\"target\":\"a\",\"amount\":1e3,\"time\":1717200000,\"kind\":\"wire\"}]}"

#endif
