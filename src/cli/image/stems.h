/* Names for what is made of pictures: their own, without folders and endings, no two alike. */
#ifndef BASIN_CLI_IMAGE_STEMS_H
#define BASIN_CLI_IMAGE_STEMS_H

#include "basin/tasks/pictures.h"

enum { BASIN_STEM = 400 };

typedef struct basin_stems {
    uint64_t *taken; /* [slots] hashes of the names that were given, 0: free */
    size_t slots;
} basin_stems;

basin_status basin_stems_new(basin_stems *stems, int64_t most, basin_error *error);
void basin_stems_free(basin_stems *stems);
/* The name of picture i: "cat" of "photos/cat.jpg", "t10k-images-17" of "t10k-images.gz[17]". A
 * second "cat" is "cat-2". */
void basin_stems_give(char name[BASIN_STEM], basin_stems *stems, const basin_pictures *pictures,
                      int64_t i);

#endif
