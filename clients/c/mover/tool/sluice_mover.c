/* SPDX-License-Identifier: Apache-2.0 */
/* sluice-mover: the stages of a way, exchanges that are hidden behind a calculation or not, and the solver of
   Strumpen94, all by the mover itself.

       sluice-mover calibrate --sizes LIST [--bytes SIZE --fragments LIST]
       sluice-mover exchange VARIANT --bytes SIZE --calculation US
       sluice-mover heat VARIANT --columns N --rows N --steps N --processes N
       sluice-mover primitives WHAT --sizes LIST

   Writes rows of CSV on standard output, behind lines "# name: value". `sluice model mover` runs it
   (docs/mover.md). */
#include "tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void refuse(int status, const char *format, ...)
{
    char text[1000];
    va_list more;
    va_start(more, format);
    vsnprintf(text, sizeof text, format, more);
    va_end(more);
    printf("# refused: %s\n", text); /* for a program that reads the rows */
    fflush(stdout);
    fprintf(stderr, "sluice-mover: %s\n", text);
    _Exit(status);
}

static uint64_t number(const char *name, const char *text, uint64_t most)
{
    char *end;
    unsigned long long value;
    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != 0 || text[0] == '-' || value > most)
        refuse(TOOL_USAGE, "%s: expected a whole number up to %llu", name, (unsigned long long)most);
    return value;
}

static double real(const char *name, const char *text, double most)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end != 0 || !(value >= 0.0 && value <= most))
        refuse(TOOL_USAGE, "%s: expected a number from 0 to %g", name, most);
    return value;
}

static int list(const char *name, const char *text, uint64_t *into)
{
    char copy[2048], *place = NULL;
    int count = 0;
    if (strlen(text) >= sizeof copy)
        refuse(TOOL_USAGE, "%s: the list is too long", name);
    strcpy(copy, text);
    for (char *one = strtok_r(copy, ",", &place); one; one = strtok_r(NULL, ",", &place)) {
        if (count == MAX_LIST)
            refuse(TOOL_USAGE, "%s: expected at most %d numbers", name, MAX_LIST);
        into[count] = number(name, one, UINT64_C(1) << 40);
        if (into[count++] == 0)
            refuse(TOOL_USAGE, "%s: expected numbers from 1", name);
    }
    if (count == 0)
        refuse(TOOL_USAGE, "%s: expected numbers, as 1,2,4", name);
    return count;
}

static void option(tool_options *asked, const char *name, const char *text)
{
    const uint64_t much = UINT64_C(1) << 40;
    if (strcmp(name, "--between") == 0)
        asked->between = text;
    else if (strcmp(name, "--table") == 0)
        asked->table = text;
    else if (strcmp(name, "--output") == 0)
        asked->output = text;
    else if (strcmp(name, "--sizes") == 0)
        asked->size_count = list(name, text, asked->sizes);
    else if (strcmp(name, "--fragments") == 0)
        asked->fragment_count = list(name, text, asked->counts);
    else if (strcmp(name, "--bytes") == 0)
        asked->bytes = number(name, text, much);
    else if (strcmp(name, "--fragment") == 0)
        asked->fragment_bytes = number(name, text, 1u << 30);
    else if (strcmp(name, "--repetitions") == 0)
        asked->repetitions = number(name, text, 1000000);
    else if (strcmp(name, "--buffer") == 0)
        asked->buffer_bytes = number(name, text, 1u << 30);
    else if (strcmp(name, "--calculation") == 0)
        asked->calculation_us = real(name, text, 1e9);
    else if (strcmp(name, "--delay") == 0)
        asked->delay_us = real(name, text, 1e7);
    else if (strcmp(name, "--pack") == 0)
        asked->pack_ns = real(name, text, 1e6);
    else if (strcmp(name, "--unpack") == 0)
        asked->unpack_ns = real(name, text, 1e6);
    else if (strcmp(name, "--pack-each") == 0)
        asked->pack_each_us = real(name, text, 1e6);
    else if (strcmp(name, "--unpack-each") == 0)
        asked->unpack_each_us = real(name, text, 1e6);
    else if (strcmp(name, "--cpu") == 0)
        asked->cpus[0] = asked->cpus[1] = (int)number(name, text, 1023);
    else if (strcmp(name, "--far-cpu") == 0)
        asked->cpus[1] = (int)number(name, text, 1023);
    else if (strcmp(name, "--columns") == 0)
        asked->columns = number(name, text, 1000000);
    else if (strcmp(name, "--rows") == 0)
        asked->rows = number(name, text, 10000000);
    else if (strcmp(name, "--steps") == 0)
        asked->steps = number(name, text, 1000000);
    else if (strcmp(name, "--processes") == 0)
        asked->processes = number(name, text, MAX_PROCESSES);
    else
        refuse(TOOL_USAGE, "%s: no option has this name", name);
}

int main(int count, char **words)
{
    tool_options asked = {.repetitions = 20, .columns = 64, .rows = 64, .steps = 50, .processes = 2,
                          .cpus = {-1, -1}};
    const char *command = count > 1 ? words[1] : "";
    for (int i = 2; i < count; i++) {
        if (strncmp(words[i], "--", 2) != 0)
            asked.what = words[i];
        else if (strcmp(words[i], "--spin") == 0)
            asked.spins = true;
        else if (strcmp(words[i], "--tcp") == 0)
            asked.is_tcp = true;
        else if (i + 1 == count)
            refuse(TOOL_USAGE, "%s: expected a value", words[i]);
        else
            option(&asked, words[i], words[i + 1]), i++;
    }
    if (strcmp(command, "list") == 0) {
        puts("calibrate\nexchange\nheat\nprimitives");
        return 0;
    }
    if (strcmp(command, "calibrate") == 0)
        return run_calibrate(&asked);
    if (strcmp(command, "exchange") == 0)
        return run_exchange(&asked);
    if (strcmp(command, "heat") == 0)
        return run_heat(&asked);
    if (strcmp(command, "primitives") == 0)
        return run_primitives(&asked);
    refuse(TOOL_USAGE, "expected calibrate, exchange, heat or primitives");
}
