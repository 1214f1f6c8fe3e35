/* What a model remembers of its training, in its file: fingerprints of the pictures, so that
 * nobody scores it on what it was trained on without being told, and a card for people
 * ("basin.card": paths, date, views, scores). */
#ifndef BASIN_TASK_IMAGE_CARD_H
#define BASIN_TASK_IMAGE_CARD_H

#include "basin/io.h"
#include "basin/tasks/run.h"
#include "task/image/set.h"

/* Fingerprints that a file keeps at most, of pictures spread evenly over larger sets: 64 KiB. */
enum { BASIN_IMAGE_PRINTS = 8192 };

/* How many of a set of pictures were trained on. */
typedef struct basin_image_overlap {
    int64_t trained_on; /* -1: the model does not know */
    bool exact;         /* all were compared with all; else the number is an estimate */
    bool held_out;      /* they are the very pictures that training held out */
} basin_image_overlap;

/* What is known when training ends. */
typedef struct basin_image_facts {
    const basin_image_source *train; /* the paths */
    const char *from;                /* the model that it began with; NULL: none */
    const basin_outcome *outcome;
    int64_t held_out, batch;
} basin_image_facts;

/* The fingerprints of a run's pictures, with those of the model file that it begins with (`from`,
 * or NULL); of `held` only how to know them again. */
basin_status basin_image_card_begin(basin_image_card *card, const basin_image_set *train,
                                    const basin_image_set *held, const basin_bundle *from,
                                    basin_error *error);
/* Writes the card itself. */
basin_status basin_image_card_end(basin_image_card *card, const basin_image_facts *facts,
                                  basin_error *error);
void basin_image_card_free(basin_image_card *card);

/* Out of a model file, where it has one, and into a bundle. */
basin_status basin_image_card_read(basin_image_card *card, const basin_bundle *bundle,
                                   basin_error *error);
basin_status basin_image_card_add(basin_bundle *bundle, const basin_image_card *card,
                                  basin_error *error);

basin_status basin_image_card_compare(basin_image_overlap *overlap, const basin_image_card *card,
                                      const basin_image_set *set, basin_error *error);

#endif
