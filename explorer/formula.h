/* Formulas of energies as people write them in NumPy, made into expressions.
 *
 *     sum((g**2 - 1)**2) / 4
 *     -logsumexp(beta * xi @ g) / beta + g @ g / 2
 *
 * A formula is parsed each time it is built: there is no tree besides the expressions themselves.
 * With `batch` states g [batch, D] every state is by itself, and names mean one of them, a vector
 * [D]; the energy is [batch]. Without, g is what it is, such as tokens [N, D] that see each other,
 * and the energy is one number. */
#ifndef BASIN_EXPLORER_FORMULA_H
#define BASIN_EXPLORER_FORMULA_H

#include <basin/expr.h>

enum { FORMULA_TEXT = 2000, FORMULA_NAMES = 16, FORMULA_MESSAGE = 240 };

typedef struct formula_name {
    char name[16];
    basin_expr value; /* the same for all states */
} formula_name;

typedef struct formula {
    char text[FORMULA_TEXT];
    bool batched;
    formula_name name[FORMULA_NAMES]; /* besides g and pi */
    int names;
    char message[FORMULA_MESSAGE]; /* what is wrong, "" for nothing */
    int place;                     /* where, in characters from the start */
} formula;

/* The energy at activations g; NULL with a message. */
basin_expr formula_build(formula *f, basin_expr g);

#endif
