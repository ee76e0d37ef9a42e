/* SPDX-License-Identifier: Apache-2.0 */
/* Every function once as documented, and each of its errors.

       unit TABLES FOLDER

   TABLES has the golden files of tests/data/tables/v1; FOLDER is empty and may be written to. */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

typedef struct places {
    const char *tables;
    const char *folder;
} places;

static const char *golden(const places *where, const char *name)
{
    static char path[4096];
    return joined(path, sizeof path, where->tables, name);
}

static const char *scratch(const places *where, const char *name)
{
    static char path[4096];
    return joined(path, sizeof path, where->folder, name);
}

/* The worked example as docs/format.md reads it. */
static void check_the_worked_example(const sluice_table *table)
{
    uint64_t sizes[4] = {7, 7, 7, 7}, size = 0;
    size_t fragments = 0;
    CHECK(sluice_schedule(table, 333, sizes, 4, &fragments) == SLUICE_OK);
    CHECK(fragments == 2 && sizes[0] == 146 && sizes[1] == 187 && sizes[2] == 7);
    CHECK(sluice_schedule(table, 50, sizes, 4, &fragments) == SLUICE_OK);
    CHECK(fragments == 1 && sizes[0] == 50 && sizes[1] == 187);
    CHECK(sluice_repeat(table, 333, &size) == SLUICE_OK && size == 167);
    CHECK(sluice_repeat(table, 1000, &size) == SLUICE_OK && size == 500);
}

static void test_opening(const places *where)
{
    sluice_table table;
    uint64_t room[81];
    unsigned char *bytes;
    size_t length;
    CHECK(sluice_table_open(&table, golden(where, "worked-example.slt")) == SLUICE_OK);
    check_the_worked_example(&table);
    sluice_table_close(&table);
    CHECK(sluice_table_load(&table, golden(where, "worked-example.slt"), NULL, 0) == SLUICE_OK);
    check_the_worked_example(&table);
    sluice_table_close(&table);
    CHECK(sluice_table_load(&table, golden(where, "worked-example.slt"), room, sizeof room) ==
          SLUICE_OK);
    check_the_worked_example(&table);
    sluice_table_close(&table);
    CHECK(sluice_table_load(&table, golden(where, "worked-example.slt"), room, 647) ==
          SLUICE_E_CAPACITY);
    bytes = bytes_of(golden(where, "worked-example.slt"), &length);
    CHECK(sluice_table_from_memory(&table, bytes, length) == SLUICE_OK);
    check_the_worked_example(&table);
    memmove(bytes + 1, bytes, length); /* at an odd address */
    CHECK(sluice_table_from_memory(&table, bytes + 1, length) == SLUICE_OK);
    check_the_worked_example(&table);
    sluice_table_close(&table);
    free(bytes);
}

/* The table after somebody did something to its file: the same answers, whatever it was. */
static void check_after(const sluice_table *table, const char *path, int is_there)
{
    CHECK((access(path, F_OK) == 0) == is_there);
    check_the_worked_example(table);
}

/* An open table does not follow its file: cp over it, truncate, replace, remove. */
static void test_what_happens_to_the_file(const places *where)
{
    sluice_table table;
    size_t length, other_length;
    char path[4096];
    unsigned char *bytes = bytes_of(golden(where, "worked-example.slt"), &length);
    unsigned char *other = bytes_of(golden(where, "aligned.slt"), &other_length);
    snprintf(path, sizeof path, "%s", scratch(where, "copied.slt"));
    write_bytes(path, bytes, length);
    CHECK(sluice_table_open(&table, path) == SLUICE_OK);
    write_bytes(path, other, other_length);
    check_after(&table, path, 1);
    CHECK(truncate(path, 0) == 0);
    check_after(&table, path, 1);
    write_bytes(scratch(where, "beside.slt"), other, other_length);
    CHECK(rename(scratch(where, "beside.slt"), path) == 0);
    check_after(&table, path, 1);
    CHECK(unlink(path) == 0);
    check_after(&table, path, 0);
    sluice_table_close(&table);
    free(other);
    free(bytes);
}

/* A mapping has to be asked for, and no other flag is taken. */
static void test_flags(const places *where)
{
    sluice_table table;
    const char *path = golden(where, "worked-example.slt");
    CHECK(sluice_table_open_with(&table, path, 0) == SLUICE_OK);
    check_the_worked_example(&table);
    sluice_table_close(&table);
    CHECK(sluice_table_open_with(&table, path, SLUICE_OPEN_MAPPED) == SLUICE_OK);
    check_the_worked_example(&table);
    sluice_table_close(&table);
    CHECK(sluice_table_open_with(&table, path, 2) == SLUICE_E_ARGUMENT);
    CHECK(sluice_table_open_with(&table, path, UINT32_MAX) == SLUICE_E_ARGUMENT);
    CHECK(sluice_repeat(&table, 333, &(uint64_t){0}) == SLUICE_E_ARGUMENT);
}

static int code_of(const places *where, const char *name)
{
    sluice_table table, closed;
    uint64_t size = 5;
    int mapped, copied, number;
    memset(&table, 0xa5, sizeof table);
    memset(&closed, 0, sizeof closed);
    errno = 0;
    mapped = sluice_table_open_with(&table, scratch(where, name), SLUICE_OPEN_MAPPED);
    number = errno;
    CHECK(memcmp(&table, &closed, sizeof table) == 0);
    copied = sluice_table_open(&table, scratch(where, name));
    CHECK(mapped == copied && memcmp(&table, &closed, sizeof table) == 0);
    CHECK(sluice_repeat(&table, 333, &size) == SLUICE_E_ARGUMENT && size == 5);
    sluice_table_close(&table);
    errno = number;
    return mapped;
}

static void test_what_is_no_table_file(const places *where)
{
    size_t length;
    unsigned char *bytes = bytes_of(golden(where, "worked-example.slt"), &length);
    CHECK(code_of(where, "absent.slt") == SLUICE_E_SYSTEM && errno == ENOENT);
    CHECK(code_of(where, ".") == SLUICE_E_FORMAT);
    CHECK(mkfifo(scratch(where, "pipe.slt"), 0600) == 0);
    CHECK(code_of(where, "pipe.slt") == SLUICE_E_FORMAT); /* and not waited for */
    write_bytes(scratch(where, "other.slt"), "", 0);
    CHECK(code_of(where, "other.slt") == SLUICE_E_FORMAT);
    write_bytes(scratch(where, "other.slt"), bytes, 7);
    CHECK(code_of(where, "other.slt") == SLUICE_E_FORMAT);
    write_bytes(scratch(where, "other.slt"), bytes, 8);
    CHECK(code_of(where, "other.slt") == SLUICE_E_TRUNCATED);
    write_bytes(scratch(where, "other.slt"), bytes, length - 1);
    CHECK(code_of(where, "other.slt") == SLUICE_E_TRUNCATED);
    bytes[300] ^= 1;
    write_bytes(scratch(where, "other.slt"), bytes, length);
    CHECK(code_of(where, "other.slt") == SLUICE_E_CHECKSUM);
    CHECK(chmod(scratch(where, "other.slt"), 0) == 0);
    if (geteuid() != 0)
        CHECK(code_of(where, "other.slt") == SLUICE_E_SYSTEM && errno == EACCES);
    free(bytes);
}

/* A file of 64 GiB with a hole behind a header that is not its own. */
static void test_a_huge_file(const places *where)
{
    sluice_table table;
    write_bytes(scratch(where, "huge.slt"), "no table", 8);
    if (truncate(scratch(where, "huge.slt"), (off_t)1 << 36) != 0)
        return; /* a file system that has no such files */
    CHECK(sluice_table_open(&table, scratch(where, "huge.slt")) == SLUICE_E_FORMAT);
    CHECK(unlink(scratch(where, "huge.slt")) == 0);
}

static void test_the_range(const sluice_table *table)
{
    static const uint64_t outside[] = {0, 1001, UINT64_C(1) << 48, UINT64_MAX};
    uint64_t size = 5;
    size_t fragments = 5;
    double gap = 5.0;
    sluice_cut cut;
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        CHECK(sluice_repeat(table, outside[i], &size) == SLUICE_E_RANGE);
        CHECK(sluice_schedule(table, outside[i], &size, 1, &fragments) == SLUICE_E_RANGE);
        CHECK(sluice_certificate(table, outside[i], &gap, &gap) == SLUICE_E_RANGE);
        CHECK(sluice_cut_begin(&cut, table, outside[i]) == SLUICE_E_RANGE);
        CHECK(sluice_cut_next(&cut, &size) == SLUICE_E_ARGUMENT);
    }
    CHECK(size == 5 && fragments == 5 && gap > 4.0);
    CHECK(sluice_repeat(table, 1, &size) == SLUICE_OK && size == 1);
}

static void test_capacity(const sluice_table *table)
{
    uint64_t sizes[2] = {7, 7};
    size_t fragments = 0;
    CHECK(sluice_schedule(table, 333, NULL, 0, &fragments) == SLUICE_E_CAPACITY && fragments == 2);
    fragments = 0;
    CHECK(sluice_schedule(table, 333, sizes, 1, &fragments) == SLUICE_E_CAPACITY);
    CHECK(fragments == 2 && sizes[0] == 7);
    CHECK(sluice_schedule(table, 333, sizes, 2, &fragments) == SLUICE_OK);
    CHECK(sizes[0] == 146 && sizes[1] == 187);
}

static void test_the_iterator(const sluice_table *table)
{
    sluice_cut cut, copy;
    uint64_t size = 0;
    CHECK(sluice_cut_begin(&cut, table, 333) == SLUICE_OK);
    CHECK(sluice_cut_next(&cut, &size) == 1 && size == 146);
    copy = cut;
    CHECK(sluice_cut_next(&cut, &size) == 1 && size == 187);
    size = 5;
    CHECK(sluice_cut_next(&cut, &size) == 0 && size == 5);
    CHECK(sluice_cut_next(&cut, &size) == 0 && size == 5);
    CHECK(sluice_cut_next(&copy, &size) == 1 && size == 187);
}

static void test_the_certificate(const sluice_table *table)
{
    double cut_gap = 9.0, repeat_gap = 9.0;
    CHECK(sluice_certificate(table, 98, &cut_gap, NULL) == SLUICE_OK && cut_gap < 1e-12);
    CHECK(sluice_certificate(table, 99, &cut_gap, &repeat_gap) == SLUICE_OK);
    CHECK(cut_gap > 0.00099 && cut_gap < 0.00101 && repeat_gap > 0.49 && repeat_gap < 0.51);
    CHECK(sluice_certificate(table, 99, NULL, NULL) == SLUICE_OK);
}

static void test_null_pointers(const sluice_table *table)
{
    uint64_t size = 5;
    size_t fragments = 5;
    sluice_table other;
    sluice_description about;
    sluice_cut cut;
    CHECK(sluice_table_open(NULL, "x") == SLUICE_E_ARGUMENT);
    CHECK(sluice_table_open(&other, NULL) == SLUICE_E_ARGUMENT);
    CHECK(sluice_table_load(&other, NULL, NULL, 0) == SLUICE_E_ARGUMENT);
    CHECK(sluice_table_load(&other, "x", NULL, 9) == SLUICE_E_ARGUMENT);
    CHECK(sluice_table_from_memory(&other, NULL, 9) == SLUICE_E_ARGUMENT);
    CHECK(sluice_table_from_memory(NULL, &size, 8) == SLUICE_E_ARGUMENT);
    CHECK(describe_table(table, NULL) == SLUICE_E_ARGUMENT);
    CHECK(describe_table(NULL, &about) == SLUICE_E_ARGUMENT);
    CHECK(sluice_repeat(table, 333, NULL) == SLUICE_E_ARGUMENT);
    CHECK(sluice_repeat(NULL, 333, &size) == SLUICE_E_ARGUMENT);
    CHECK(sluice_schedule(table, 333, NULL, 9, &fragments) == SLUICE_E_ARGUMENT);
    CHECK(sluice_schedule(table, 333, &size, 1, NULL) == SLUICE_E_ARGUMENT);
    CHECK(sluice_cut_begin(NULL, table, 333) == SLUICE_E_ARGUMENT);
    CHECK(sluice_cut_begin(&cut, NULL, 333) == SLUICE_E_ARGUMENT);
    CHECK(sluice_cut_next(NULL, &size) == SLUICE_E_ARGUMENT);
    CHECK(sluice_certificate(NULL, 333, NULL, NULL) == SLUICE_E_ARGUMENT);
    sluice_table_close(NULL);
    CHECK(size == 5 && fragments == 5);
}

static void test_lookups(const places *where)
{
    sluice_table table;
    CHECK(sluice_table_open(&table, golden(where, "worked-example.slt")) == SLUICE_OK);
    test_the_range(&table);
    test_capacity(&table);
    test_the_iterator(&table);
    test_the_certificate(&table);
    test_null_pointers(&table);
    sluice_table_close(&table);
    sluice_table_close(&table);
    CHECK(sluice_certificate(&table, 333, NULL, NULL) == SLUICE_E_ARGUMENT);
}

static void test_no_repeated_size(const places *where)
{
    sluice_table table;
    uint64_t size = 5;
    CHECK(sluice_table_open(&table, golden(where, "sparse.slt")) == SLUICE_OK);
    CHECK(sluice_repeat(&table, 36, &size) == SLUICE_E_NO_REPEAT && size == 5);
    CHECK(sluice_repeat(&table, 38, &size) == SLUICE_OK && size == 16);
    sluice_table_close(&table);
}

static void test_the_description(const places *where)
{
    sluice_table table;
    sluice_description about;
    CHECK(sluice_table_open(&table, golden(where, "aligned.slt")) == SLUICE_OK);
    CHECK(describe_table(&table, &about) == SLUICE_OK);
    CHECK(about.min_message_bytes == 200 && about.max_message_bytes == 3650);
    CHECK(about.min_fragment_bytes == 64 && about.max_fragment_bytes == 4096);
    CHECK(about.alignment_bytes == 64 && about.max_fragments == 9 && about.fragment_cap == 1000);
    CHECK(about.max_schedule_fragments == 3 && about.cut_count == 6 && about.repeat_count == 5);
    CHECK(about.revision == 0 && strcmp(about.profile, "") == 0);
    sluice_table_close(&table);
    CHECK(sluice_table_open(&table, golden(where, "huge.slt")) == SLUICE_OK);
    CHECK(describe_table(&table, &about) == SLUICE_OK);
    CHECK(strcmp(about.profile, "huge.v2") == 0 && about.revision == 0x7fffffff);
    CHECK(about.max_fragment_bytes == 0 && about.max_message_bytes == UINT64_C(1) << 48);
    CHECK(about.relative_gap > 0.00099 && about.relative_gap < 0.00101);
    sluice_table_close(&table);
}

/* A caller that knows less of the description, or more, than this library. */
static void test_descriptions_of_other_versions(const places *where)
{
    struct {
        sluice_description about;
        uint64_t later;
    } newer;
    sluice_table table;
    sluice_description about;
    CHECK(sluice_table_open(&table, golden(where, "aligned.slt")) == SLUICE_OK);
    memset(&about, 0xaa, sizeof about);
    about.size = 3 * sizeof(uint64_t);
    CHECK(sluice_table_describe(&table, &about) == SLUICE_OK);
    CHECK(about.size == 24 && about.max_message_bytes == 3650);
    CHECK(about.min_fragment_bytes == UINT64_C(0xaaaaaaaaaaaaaaaa));
    memset(&newer, 0xaa, sizeof newer);
    newer.about.size = sizeof newer;
    CHECK(sluice_table_describe(&table, &newer.about) == SLUICE_OK);
    CHECK(newer.about.size == sizeof about && newer.later == UINT64_C(0xaaaaaaaaaaaaaaaa));
    about.size = 7;
    CHECK(sluice_table_describe(&table, &about) == SLUICE_E_ARGUMENT && about.size == 7);
    sluice_table_close(&table);
}

/* The code that opening gives, with the rule and the place. */
static void test_faults(const places *where)
{
    size_t length;
    unsigned char *bytes = bytes_of(golden(where, "worked-example.slt"), &length);
    sluice_fault fault;
    memset(&fault, 0xaa, sizeof fault);
    fault.size = sizeof fault;
    CHECK(sluice_explain(&fault, golden(where, "worked-example.slt")) == SLUICE_OK);
    CHECK(fault.code == SLUICE_OK && fault.offset == 0 && strcmp(fault.rule, "no error") == 0);
    CHECK(sluice_explain(&fault, where->folder) == SLUICE_E_FORMAT);
    CHECK(strcmp(fault.rule, "a table is a regular file") == 0);
    CHECK(sluice_explain(&fault, scratch(where, "absent.slt")) == SLUICE_E_SYSTEM);
    CHECK(errno == ENOENT && fault.code == SLUICE_E_SYSTEM && fault.rule[0] != 0);
    CHECK(sluice_explain_memory(&fault, bytes, length - 1) == SLUICE_E_TRUNCATED);
    CHECK(fault.offset == 16 && strcmp(fault.rule, "file_bytes is the length of the file") == 0);
    bytes[300]++;
    CHECK(sluice_explain_memory(&fault, bytes, length) == SLUICE_E_CHECKSUM && fault.offset == 24);
    fault.size = 7;
    CHECK(sluice_explain_memory(&fault, bytes, length) == SLUICE_E_ARGUMENT);
    CHECK(sluice_explain_memory(NULL, bytes, length) == SLUICE_E_ARGUMENT);
    fault.size = sizeof fault;
    CHECK(sluice_explain_memory(&fault, NULL, 0) == SLUICE_E_ARGUMENT);
    CHECK(sluice_explain(&fault, NULL) == SLUICE_E_ARGUMENT);
    free(bytes);
}

/* The environment of the convention, and nothing else of it. */
static void set_places(const char *table, const char *config, const char *home)
{
    const char *names[3] = {"SLUICE_TABLE", "XDG_CONFIG_HOME", "HOME"};
    const char *values[3] = {table, config, home};
    for (int i = 0; i < 3; i++)
        CHECK((values[i] ? setenv(names[i], values[i], 1) : unsetenv(names[i])) == 0);
}

static void test_finding(const places *where)
{
    char path[4096], expected[4096], folder[4096];
    joined(folder, sizeof folder, where->folder, ".config");
    CHECK(mkdir(folder, 0700) == 0);
    joined(folder, sizeof folder, where->folder, ".config/sluice");
    CHECK(mkdir(folder, 0700) == 0);
    joined(expected, sizeof expected, folder, "rack.2.slt");
    write_bytes(expected, "", 0);

    set_places(NULL, NULL, where->folder);
    CHECK(sluice_table_find("rack.2", path, sizeof path) == SLUICE_OK);
    CHECK(strcmp(path, expected) == 0);
    CHECK(sluice_table_find("rack.2", path, strlen(expected) + 1) == SLUICE_OK);
    CHECK(sluice_table_find("rack.2", path, strlen(expected)) == SLUICE_E_CAPACITY && path[0] == 0);
    CHECK(sluice_table_find("rack.2", path, 1) == SLUICE_E_CAPACITY && path[0] == 0);
    CHECK(sluice_table_find("absent", path, sizeof path) == SLUICE_E_SYSTEM && errno == ENOENT);

    joined(folder, sizeof folder, where->folder, ".config");
    set_places("", folder, "/nowhere");
    CHECK(sluice_table_find("rack.2", path, sizeof path) == SLUICE_OK);
    CHECK(strcmp(path, expected) == 0);
    set_places(where->tables, folder, NULL);
    CHECK(sluice_table_find("sparse", path, sizeof path) == SLUICE_OK);
    CHECK(strcmp(path, golden(where, "sparse.slt")) == 0);
    CHECK(sluice_table_find("rack.2", path, sizeof path) == SLUICE_E_SYSTEM); /* nothing else is asked */
    set_places(expected, NULL, NULL);
    CHECK(sluice_table_find("any", path, sizeof path) == SLUICE_OK && strcmp(path, expected) == 0);
    set_places("/nowhere/a.slt", NULL, NULL); /* opening it says that it is not there */
    CHECK(sluice_table_find("any", path, sizeof path) == SLUICE_OK);
    CHECK(strcmp(path, "/nowhere/a.slt") == 0);
    set_places(NULL, NULL, NULL);
    CHECK(sluice_table_find("any", path, sizeof path) == SLUICE_E_SYSTEM && path[0] == 0);
}

static void test_names_that_are_none(void)
{
    const char *names[] = {"", "../a", "a/b", "A", ".a", "-a", "a b", "a\n",
                           "a1234567890123456789012345678901234567890123456789012345678901234"};
    char path[64];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK(sluice_table_find(names[i], path, sizeof path) == SLUICE_E_ARGUMENT);
    CHECK(sluice_table_find(NULL, path, sizeof path) == SLUICE_E_ARGUMENT);
    CHECK(sluice_table_find("a", NULL, 8) == SLUICE_E_ARGUMENT);
    CHECK(sluice_table_find("a", path, 0) == SLUICE_E_ARGUMENT);
}

static uint64_t live_min(sluice_live *live)
{
    sluice_ticket ticket;
    sluice_description about;
    const sluice_table *table = sluice_live_enter(live, &ticket);
    CHECK(table && describe_table(table, &about) == SLUICE_OK);
    sluice_live_leave(live, &ticket);
    return about.min_message_bytes;
}

/* From bytes, which the caller may change afterwards. */
static void test_a_live_table_from_memory(const places *where)
{
    static sluice_live live;
    size_t length, other_length;
    unsigned char *bytes = bytes_of(golden(where, "worked-example.slt"), &length);
    unsigned char *other = bytes_of(golden(where, "aligned.slt"), &other_length);
    CHECK(sluice_live_open_memory(NULL, bytes, length) == SLUICE_E_ARGUMENT);
    CHECK(sluice_live_open_memory(&live, NULL, length) == SLUICE_E_ARGUMENT);
    CHECK(sluice_live_open_memory(&live, bytes, 0) == SLUICE_E_FORMAT);
    CHECK(sluice_live_open_memory(&live, bytes, length - 1) == SLUICE_E_TRUNCATED);
    CHECK(sluice_live_open_memory(&live, bytes, length) == SLUICE_OK);
    memset(bytes, 0xff, length);
    CHECK(live_min(&live) == 1);
    CHECK(sluice_live_swap_memory(&live, bytes, length, 0) == SLUICE_E_FORMAT);
    CHECK(sluice_live_swap_memory(&live, NULL, length, 0) == SLUICE_E_ARGUMENT);
    CHECK(live_min(&live) == 1);
    CHECK(sluice_live_swap_memory(&live, other, other_length, 0) == SLUICE_OK);
    memset(other, 0, other_length);
    CHECK(live_min(&live) == 200);
    sluice_live_close(&live);
    free(other);
    free(bytes);
}

enum { OTHER_TABLES = 15 };

/* Readers that never leave: each keeps its table as it is, and blocks nobody until there are as many
   as tables; even then no swap waits longer than it was asked to. */
static void test_readers_that_never_leave(const places *where)
{
    static sluice_live live;
    sluice_ticket lost[OTHER_TABLES + 1];
    const sluice_table *held[OTHER_TABLES + 1];
    const char *names[2] = {"worked-example.slt", "aligned.slt"};
    sluice_description about;
    CHECK(sluice_live_open(&live, golden(where, names[0])) == SLUICE_OK);
    for (int i = 0; i <= OTHER_TABLES; i++) {
        held[i] = sluice_live_enter(&live, &lost[i]);
        CHECK(sluice_live_reclaim(&live) == i);
        CHECK(sluice_live_try_swap(&live, golden(where, names[(i + 1) % 2])) ==
              (i < OTHER_TABLES ? SLUICE_OK : SLUICE_E_IN_USE));
    }
    CHECK(sluice_live_swap_within(&live, golden(where, names[0]), 20) == SLUICE_E_IN_USE);
    for (int i = 0; i <= OTHER_TABLES; i++) {
        CHECK(describe_table(held[i], &about) == SLUICE_OK);
        CHECK(about.min_message_bytes == (i % 2 ? 200 : 1));
    }
    sluice_live_leave(&live, &lost[7]);
    CHECK(sluice_live_try_swap(&live, golden(where, "sparse.slt")) == SLUICE_OK);
    CHECK(live_min(&live) == 35);
    sluice_live_close(&live);
}

/* What a child does with a live table of which its parent's readers were copied. */
static int in_the_child(sluice_live *live, sluice_ticket *held, const places *where)
{
    sluice_live_after_fork(live);
    CHECK(sluice_live_reclaim(live) == 0);
    for (int i = 0; i < 40; i++)
        CHECK(sluice_live_try_swap(live, golden(where, i % 2 ? "aligned.slt" : "sparse.slt")) ==
              SLUICE_OK);
    sluice_live_leave(live, held); /* of the parent's life: it counts nothing */
    CHECK(sluice_live_try_swap(live, golden(where, "sparse.slt")) == SLUICE_OK);
    CHECK(live_min(live) == 35);
    sluice_live_close(live);
    return 0;
}

static void test_a_fork(const places *where)
{
    static sluice_live live;
    sluice_ticket ticket;
    int status = -1;
    pid_t child;
    sluice_live_after_fork(NULL);
    sluice_live_after_fork(&live);
    CHECK(sluice_live_reclaim(&live) == SLUICE_E_ARGUMENT);
    CHECK(sluice_live_open(&live, golden(where, "worked-example.slt")) == SLUICE_OK);
    CHECK(sluice_live_enter(&live, &ticket) != NULL);
    CHECK(sluice_live_try_swap(&live, golden(where, "aligned.slt")) == SLUICE_OK);
    child = fork();
    if (child == 0)
        _exit(in_the_child(&live, &ticket, where));
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    CHECK(sluice_live_reclaim(&live) == 1); /* the child's leaving was its own */
    sluice_live_leave(&live, &ticket);
    CHECK(sluice_live_reclaim(&live) == 0);
    CHECK(live_min(&live) == 200);
    sluice_live_close(&live);
}

static void test_a_live_table(const places *where)
{
    static sluice_live live;
    sluice_ticket ticket;
    CHECK(sluice_live_enter(&live, &ticket) == NULL);
    CHECK(sluice_live_swap(&live, golden(where, "aligned.slt")) == SLUICE_E_ARGUMENT);
    CHECK(sluice_live_open(&live, scratch(where, "absent.slt")) == SLUICE_E_SYSTEM);
    CHECK(sluice_live_enter(&live, &ticket) == NULL);
    CHECK(sluice_live_open(&live, golden(where, "worked-example.slt")) == SLUICE_OK);
    CHECK(live_min(&live) == 1);
    CHECK(sluice_live_swap(&live, golden(where, "aligned.slt")) == SLUICE_OK);
    CHECK(live_min(&live) == 200);
    CHECK(sluice_live_swap(&live, where->folder) == SLUICE_E_FORMAT);
    CHECK(live_min(&live) == 200);
    CHECK(sluice_live_swap(&live, golden(where, "sparse.slt")) == SLUICE_OK);
    CHECK(live_min(&live) == 35);
    CHECK(sluice_live_enter(NULL, &ticket) == NULL && sluice_live_enter(&live, NULL) == NULL);
    CHECK(sluice_live_swap(&live, NULL) == SLUICE_E_ARGUMENT);
    CHECK(sluice_live_open(NULL, "x") == SLUICE_E_ARGUMENT);
    sluice_live_leave(NULL, NULL);
    sluice_live_close(&live);
    sluice_live_close(&live);
    sluice_live_close(NULL);
    CHECK(sluice_live_enter(&live, &ticket) == NULL);
}

static void test_texts(void)
{
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", SLUICE_VERSION_MAJOR, SLUICE_VERSION_MINOR,
             SLUICE_VERSION_PATCH);
    CHECK(strcmp(version, sluice_version()) == 0);
    for (int code = SLUICE_OK; code > SLUICE_E_BUSY; code--)
        for (int other = code - 1; other >= SLUICE_E_BUSY - 1; other--)
            CHECK(strcmp(sluice_error_text(code), sluice_error_text(other)) != 0);
    CHECK(strcmp(sluice_error_text(1), sluice_error_text(-1000)) == 0);
}

int main(int argc, char **argv)
{
    places where;
    CHECK(argc == 3);
    where.tables = argv[1];
    where.folder = argv[2];
    test_opening(&where);
    test_what_happens_to_the_file(&where);
    test_flags(&where);
    test_what_is_no_table_file(&where);
    test_a_huge_file(&where);
    test_lookups(&where);
    test_no_repeated_size(&where);
    test_the_description(&where);
    test_descriptions_of_other_versions(&where);
    test_faults(&where);
    test_finding(&where);
    test_names_that_are_none();
    test_a_live_table(&where);
    test_a_live_table_from_memory(&where);
    test_readers_that_never_leave(&where);
    test_a_fork(&where);
    test_texts();
    puts("unit: all as documented");
    return 0;
}
