/* SPDX-License-Identifier: Apache-2.0 */
/* What a messaging library does with a table: open it once at start-up, then ask per message.

       lookup TABLE.slt BYTES...

   Prints for each message size the best size to repeat and the best schedule. Compiles as C11 and as
   C++17. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sluice.h"

/* What the library keeps. Without a table it does what it always did. */
typedef struct settings {
    sluice_table table;
    int has_table;
    uint64_t fallback_bytes;
} settings;

/* At start-up. A file that is missing or refused is no reason not to start. */
static void start(settings *all, const char *path)
{
    int code = sluice_table_open(&all->table, path);
    all->has_table = code == SLUICE_OK;
    all->fallback_bytes = 64 * 1024;
    if (!all->has_table)
        fprintf(stderr, "%s: %s; every fragment has %" PRIu64 " bytes\n", path,
                sluice_error_text(code), all->fallback_bytes);
}

/* Per message, where fragments are of one size: some ten nanoseconds. */
static uint64_t fragment_size(const settings *all, uint64_t message_bytes)
{
    uint64_t size;
    if (all->has_table && sluice_repeat(&all->table, message_bytes, &size) == SLUICE_OK)
        return size;
    return all->fallback_bytes;
}

/* Per message, where every fragment may have a size of its own: one at a time, without an array. */
static void send_in_fragments(const settings *all, uint64_t message_bytes)
{
    sluice_cut cut;
    uint64_t size = 0, offset = 0;
    if (!all->has_table || sluice_cut_begin(&cut, &all->table, message_bytes) != SLUICE_OK) {
        printf(" of the repeated size\n");
        return;
    }
    while (sluice_cut_next(&cut, &size) == 1) {
        printf(" %" PRIu64, size); /* here: send `size` bytes of the message from `offset` on */
        offset += size;
    }
    printf(" (%" PRIu64 " in all)\n", offset);
}

int main(int argc, char **argv)
{
    settings all;
    if (argc < 3) {
        fprintf(stderr, "usage: lookup TABLE.slt BYTES...\n");
        return 2;
    }
    start(&all, argv[1]);
    for (int i = 2; i < argc; i++) {
        uint64_t message_bytes = strtoull(argv[i], NULL, 10);
        printf("%" PRIu64 " bytes: repeat %" PRIu64 ", or fragments", message_bytes,
               fragment_size(&all, message_bytes));
        send_in_fragments(&all, message_bytes);
    }
    sluice_table_close(&all.table);
    return all.has_table ? 0 : 1;
}
