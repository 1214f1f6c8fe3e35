/* Kernel calls as text. */
#ifndef BASIN_PLAN_DESCRIBE_H
#define BASIN_PLAN_DESCRIBE_H

#include "backend/kernel.h"

void basin_call_describe(char *text, size_t size, const basin_call *call);

#endif
