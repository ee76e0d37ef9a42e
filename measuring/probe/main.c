/* Time the stages of a mover and the signatures of a transport, one sample for each line read.

       sluice-probe stage NAME --max-bytes N [--cpus A,B] [--path FOLDER] [--cold]
       sluice-probe signature TRANSPORT --max-bytes N [--cpus A,B] [--window W]
       sluice-probe transfer NAME,NAME,... --max-bytes N [--depth D] [--cpus A,B] [--path FOLDER]
       sluice-probe listen ADDRESS --max-bytes N [--port P] [--cpus A,B]
       sluice-probe keep PARENT PROGRAM WORD...
       sluice-probe list

   Of a stage and a signature the far end is at --host HOST --port P, where one listens.
   Standard input asks, standard output answers; "# name: value" comes first. Exit status: 2 for a
   wrong question, 3 for what is not here, 4 for what failed. */
#include "probe.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

static size_t count_of(const char *name, const char *text, unsigned long long max)
{
    char *end;
    errno = 0;
    unsigned long long found = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || found < 1 || found > max)
        refuse(PROBE_USAGE, "%s: expected a whole number from 1 to %llu", name, max);
    return (size_t)found;
}

static void read_cpus(struct options *asked, const char *text)
{
    char rest;
    int found = sscanf(text, "%d,%d%c", &asked->cpus[0], &asked->cpus[1], &rest);
    if (found == 1)
        asked->cpus[1] = asked->cpus[0];
    if (found < 1 || found > 2 || asked->cpus[0] < 0 || asked->cpus[1] < 0)
        refuse(PROBE_USAGE, "--cpus: expected one number or two, as 0,1");
}

static struct options read_options(int count, char **words)
{
    struct options asked = {.name = words[0], .path = ".", .window = 256, .depth = 4,
                            .cpus = {-1, -1}};
    for (int i = 1; i < count; i++) {
        if (!strcmp(words[i], "--cold")) {
            asked.cold = true;
            continue;
        }
        if (i + 1 == count)
            refuse(PROBE_USAGE, "%s: expected a value", words[i]);
        const char *value = words[++i];
        if (!strcmp(words[i - 1], "--max-bytes"))
            asked.max_bytes = count_of("--max-bytes", value, 1ull << 40);
        else if (!strcmp(words[i - 1], "--window"))
            asked.window = count_of("--window", value, 1ull << 40);
        else if (!strcmp(words[i - 1], "--depth"))
            asked.depth = count_of("--depth", value, 1ull << 16);
        else if (!strcmp(words[i - 1], "--port"))
            asked.port = (int)count_of("--port", value, 65535);
        else if (!strcmp(words[i - 1], "--host"))
            asked.host = value;
        else if (!strcmp(words[i - 1], "--path"))
            asked.path = value;
        else if (!strcmp(words[i - 1], "--cpus"))
            read_cpus(&asked, value);
        else
            refuse(PROBE_USAGE, "%s: unknown option", words[i - 1]);
    }
    if (!asked.max_bytes)
        refuse(PROBE_USAGE, "--max-bytes is missing");
    pin_to(asked.cpus[0]);
    return asked;
}

int main(int count, char **words)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file beyond the limit of the process: the write says so */
    if (count == 2 && !strcmp(words[1], "list")) {
        list_stages();
        list_transports();
        return 0;
    }
    if (count > 3 && !strcmp(words[1], "keep"))
        return run_kept((int)count_of("keep", words[2], 1 << 30), words + 3);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* else it would end a burst or a copy first */
    if (count < 3)
        refuse(PROBE_USAGE, "expected: stage NAME, signature TRANSPORT, transfer NAMES, "
                            "listen ADDRESS, or list");
    const char *what = words[1];
    int (*run)(const struct options *) = !strcmp(what, "stage")       ? run_stage
                                         : !strcmp(what, "signature") ? run_signature
                                         : !strcmp(what, "transfer")  ? run_transfer
                                         : !strcmp(what, "listen")    ? run_listener
                                                                      : NULL;
    if (!run)
        refuse(PROBE_USAGE, "%s: expected stage, signature, transfer, listen or list", what);
    struct options asked = read_options(count - 2, words + 2);
    return run(&asked);
}
