/* SPDX-License-Identifier: Apache-2.0 */
/* An entry for libFuzzer, which finds its own way through the checks:

       clang -std=c11 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude tests/libfuzzer.c and
           every file of src
       ./a.out -runs=1000000 -max_len=2000 corpus tables

   What it makes is sealed, so that it does not have to guess a checksum. */
#include "promises.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    sluice_table table;
    sluice_description about;
    uint64_t messages[5];
    unsigned char *bytes = malloc(length ? length : 1);
    CHECK(bytes);
    memcpy(bytes, data, length);
    seal(bytes, length);
    if (sluice_table_from_memory(&table, bytes, length) == SLUICE_OK) {
        CHECK(describe_table(&table, &about) == SLUICE_OK);
        for (uint64_t i = 0; i < 5; i++)
            messages[i] =
                about.min_message_bytes +
                (about.max_message_bytes - about.min_message_bytes) * i / 4;
        check_promises(&table, messages, 5);
    }
    sluice_table_close(&table);
    free(bytes);
    return 0;
}
