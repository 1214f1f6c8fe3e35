/* Some bits of every kind; test_damage_slow has a thousand. */
enum { FLIPS = 24 };
#include "tasks/damage.h"
