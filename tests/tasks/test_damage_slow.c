/* A thousand bits of every kind of tensor, and of the header. */
enum { FLIPS = 1000 };
#include "tasks/damage.h"
