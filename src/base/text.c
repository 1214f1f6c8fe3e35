/* Lists of names in a line; see text.h. */
#include "base/text.h"

#include <stdio.h>
#include <string.h>

void basin_list_add(basin_list *list, const char *name) {
    enum { REST = 40 }; /* room for the number of others */
    int used = list->length, room = BASIN_LIST_TEXT - used - REST;
    list->count++;
    if (list->shown == list->count - 1 && (int)strlen(name) + 2 < room) {
        list->length +=
            snprintf(list->text + used, (size_t)room, "%s%s", list->shown ? ", " : "", name);
        list->shown++;
    } else {
        snprintf(list->text + used, REST, " and %d more", list->count - list->shown);
    }
}
