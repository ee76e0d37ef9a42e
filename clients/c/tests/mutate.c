/* SPDX-License-Identifier: Apache-2.0 */
/* Mutated table files: refused, or right in all that they answer.

       mutate FILES SEED TABLE.slt...

   Makes FILES files out of the given ones: flipped bits, fields of header and records, pieces put
   elsewhere, ends cut off. In seven of eight the length and the checksum are put right afterwards, as a
   hostile writer would, so that all later checks are reached. What is accepted has to keep every promise
   at many message sizes. Then its bytes are overwritten behind the library's back, as those of a mapped
   file can be, and it is asked again: it may answer anything and must stay inside. Compile with
   -fsanitize=address,undefined; each file is in a block of exactly its size.

   A library compiled with SLUICE_CHECKED, as this program then has to be, answers even so with nothing
   that is not an answer.

   Prints how many files there were, how many were accepted, and how many got each code. */
#include "promises.h"

enum { MAX_FILES = 16, MAX_MUTATIONS = 3, LOOKUPS = 24, HEADER = 256 };

#ifdef SLUICE_CHECKED
enum { IS_CHECKED = 1 };
#else
enum { IS_CHECKED = 0 };
#endif

typedef struct seed_file {
    unsigned char *bytes;
    size_t length;
} seed_file;

/* A file under change, in room enough for all that is put into it. */
typedef struct draft {
    unsigned char *bytes;
    size_t length;
    size_t room;
} draft;

/* splitmix64, by Sebastiano Vigna (public domain). No expression below asks twice, since C does not
   say which half of one comes first: so a seed means the same files with every compiler. */
static uint64_t state;

static uint64_t random_bits(void)
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t below(uint64_t limit)
{
    return random_bits() % limit;
}

/* --- mutations -------------------------------------------------------------------------------- */

static uint64_t interesting(void)
{
    static const uint64_t values[] = {0, 1, 2, 3, 4, 7, 8, 39, 40, 63, 64, 65, 255, 256, 1000};
    uint64_t kind = below(4), bit = below(64), step = below(5);
    if (kind == 0)
        return values[below(sizeof values / sizeof *values)];
    if (kind == 1)
        return ((uint64_t)1 << bit) + step - 2;
    if (kind == 2)
        return UINT64_C(0x3fc0000000000000) + (bit << 47) + (step << 52); /* a double near 1 */
    return random_bits() >> bit;
}

/* A place of `bytes` bytes, aligned: in the header, or anywhere. */
static unsigned char *place(const draft *file, unsigned bytes)
{
    size_t end = below(3) == 0 && file->length > HEADER ? HEADER : file->length;
    return end < bytes ? NULL : file->bytes + below(end / bytes) * bytes;
}

static void flip_a_bit(draft *file)
{
    unsigned char bit = (unsigned char)(1u << below(8));
    if (file->length)
        file->bytes[below(file->length)] ^= bit;
}

static void write_a_field(draft *file)
{
    unsigned bytes = below(2) ? 8 : 4;
    unsigned char *at = place(file, bytes);
    if (at)
        put(at, bytes, interesting());
}

/* A field by a little more or less: that is what most often stays right. */
static void move_a_field(draft *file)
{
    unsigned bytes = below(2) ? 8 : 4;
    unsigned char *at = place(file, bytes);
    uint64_t step = below(9);
    if (at)
        put(at, bytes, get(at, bytes) + step - 4);
}

/* A field takes the value of another one. */
static void copy_a_field(draft *file)
{
    unsigned char *from = place(file, 8);
    unsigned char *to = place(file, 8);
    if (from && to)
        memmove(to, from, 8);
}

/* A piece is put in, left out or written over another one; records keep their length. */
static void splice(draft *file)
{
    static const size_t pieces[] = {1, 4, 8, 24, 32, 40, 72, 80};
    size_t length = pieces[below(sizeof pieces / sizeof *pieces)], from, to;
    if (file->length < 2 * length)
        return;
    from = (size_t)below((file->length - length) / 8 + 1) * 8;
    to = (size_t)below((file->length - length) / 8 + 1) * 8;
    from = from < file->length - length ? from : file->length - length;
    to = to < file->length - length ? to : file->length - length;
    if (below(3) == 0) {
        memmove(file->bytes + from, file->bytes + to, length);
    } else if (below(2) == 0) {
        memmove(file->bytes + from, file->bytes + from + length, file->length - from - length);
        file->length -= length;
    } else if (file->length + length <= file->room) {
        memmove(file->bytes + to + length, file->bytes + to, file->length - to);
        file->length += length;
    }
}

/* A record more or fewer, and the header knows of it: sections move as they should. */
static void add_a_record(draft *file)
{
    size_t kind = (size_t)below(2), length = kind ? 32 : 40, at;
    uint64_t count = file->length >= HEADER ? get(file->bytes + 96 + 8 * kind, 8) : 0;
    uint64_t start = file->length >= HEADER ? get(file->bytes + 128 + 8 * kind, 8) : 0;
    if (count == 0 || count > file->length / length || start > file->length - count * length ||
        file->length + length > file->room)
        return;
    at = (size_t)(start + below(count) * length);
    memmove(file->bytes + at + length, file->bytes + at, file->length - at);
    file->length += length;
    put(file->bytes + 96 + 8 * kind, 8, count + 1);
    for (size_t offset = 128 + 8 * (kind + 1); offset <= 152; offset += 8)
        put(file->bytes + offset, 8, get(file->bytes + offset, 8) + length);
    count = get(file->bytes + at, 8);
    at += below(2) ? length : 0;
    put(file->bytes + at, 8, count + (below(2) ? 1 : below(1000)));
}

static void cut_off(draft *file)
{
    size_t unit = below(2) ? 1 : 8;
    if (file->length)
        file->length = (size_t)below(file->length) / unit * unit;
}

static void mutate(draft *file)
{
    switch (below(16)) {
    case 0: cut_off(file); break;
    case 1: case 2: splice(file); break;
    case 3: case 4: flip_a_bit(file); break;
    case 5: copy_a_field(file); break;
    case 6: case 7: case 8: write_a_field(file); break;
    case 9: case 10: add_a_record(file); break;
    default: move_a_field(file); break;
    }
}

/* --- asking ---------------------------------------------------------------------------------- */

/* A size of the range: its ends, one of a record or beside it, or any. */
static uint64_t some_size(const draft *file, const sluice_description *about, unsigned i)
{
    uint64_t range = about->max_message_bytes - about->min_message_bytes, size;
    if (i < 2)
        return i ? about->max_message_bytes : about->min_message_bytes;
    if (i % 2 == 0)
        return about->min_message_bytes + random_bits() % (range + 1);
    size = get(file->bytes + HEADER + 40 * below(about->cut_count), 8);
    size += below(3) - 1;
    return size - about->min_message_bytes <= range ? size : about->max_message_bytes;
}

static void check_file(const sluice_table *table, const draft *file)
{
    uint64_t messages[LOOKUPS];
    sluice_description about;
    CHECK(describe_table(table, &about) == SLUICE_OK);
    for (unsigned i = 0; i < LOOKUPS; i++)
        messages[i] = some_size(file, &about, i);
    check_promises(table, messages, LOOKUPS);
}

/* Ask a table whose bytes were overwritten after it was opened. */
static void ask_overwritten(const sluice_table *table, draft *file)
{
    sluice_description about;
    uint64_t sizes[64], size;
    size_t count;
    sluice_cut cut;
    double gap;
    CHECK(describe_table(table, &about) == SLUICE_OK);
    for (unsigned i = 0; i < LOOKUPS; i++) {
        uint64_t message = about.min_message_bytes +
                           random_bits() % (about.max_message_bytes - about.min_message_bytes + 1);
        write_a_field(file);
        move_a_field(file);
        if (sluice_repeat(table, message, &size) == SLUICE_OK && IS_CHECKED)
            check_size(&about, message, size);
        if (sluice_schedule(table, message, sizes, 64, &count) == SLUICE_OK && IS_CHECKED)
            check_sizes(&about, message, sizes, count);
        sluice_certificate(table, message, &gap, &gap);
        if (sluice_cut_begin(&cut, table, message) == SLUICE_OK)
            for (unsigned steps = 0; steps < 64 && sluice_cut_next(&cut, &size) == 1; steps++)
                write_a_field(file);
    }
}

/* --- the campaign ----------------------------------------------------------------------------- */

/* The draft's bytes in a block of exactly their number, so that a byte too far is noticed. */
static draft exact_copy(const draft *file)
{
    draft copy = {malloc(file->length ? file->length : 1), file->length, file->length};
    CHECK(copy.bytes);
    memcpy(copy.bytes, file->bytes, file->length);
    return copy;
}

static int try_file(const seed_file *seed, draft *file)
{
    sluice_table table;
    sluice_fault fault;
    draft exact;
    int code;
    fault.size = sizeof fault;
    memcpy(file->bytes, seed->bytes, seed->length);
    file->length = seed->length;
    for (uint64_t times = 1 + below(MAX_MUTATIONS); times > 0; times--)
        mutate(file);
    if (below(8) != 0)
        seal(file->bytes, file->length);
    exact = exact_copy(file);
    code = sluice_table_from_memory(&table, exact.bytes, exact.length);
    CHECK(sluice_explain_memory(&fault, exact.bytes, exact.length) == code && fault.code == code);
    CHECK(fault.offset <= exact.length && fault.rule[0] != 0);
    if (code == SLUICE_OK) {
        check_file(&table, &exact);
        ask_overwritten(&table, &exact);
    }
    sluice_table_close(&table);
    free(exact.bytes);
    return code;
}

int main(int argc, char **argv)
{
    seed_file seeds[MAX_FILES];
    uint64_t codes[16] = {0}, files;
    draft file = {NULL, 0, 0};
    int count = argc - 3;
    CHECK(count >= 1 && count <= MAX_FILES);
    for (int i = 0; i < count; i++) {
        seeds[i].bytes = bytes_of(argv[3 + i], &seeds[i].length);
        file.room = seeds[i].length + 1024 > file.room ? seeds[i].length + 1024 : file.room;
    }
    CHECK((file.bytes = malloc(file.room)) != NULL);
    files = strtoull(argv[1], NULL, 10);
    state = strtoull(argv[2], NULL, 10);
    for (uint64_t i = 0; i < files; i++)
        codes[-try_file(&seeds[below((uint64_t)count)], &file)]++;
    printf("mutate: %llu files, %llu accepted", (unsigned long long)files,
           (unsigned long long)codes[0]);
    for (int code = 1; code < 16; code++)
        if (codes[code])
            printf(", %llu x %d", (unsigned long long)codes[code], -code);
    printf("\n");
    for (int i = 0; i < count; i++)
        free(seeds[i].bytes);
    free(file.bytes);
    return 0;
}
