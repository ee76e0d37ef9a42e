/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that all send to each other before any of them receives: what blocking writes make of it, what the discipline
   of Strumpen94 makes of it, and the mover.

       exchange HOW PROCESSES TOPOLOGY BYTES BUFFER FRAGMENT [ROUNDS [SEED]]

   HOW        mover       sends, waits for the sends, then receives
              tight       the same with a tenth of the room that it takes: every process is told that it stalled,
                          then receives, and all arrives
              blocking    writes all of it to each in turn, and reads then
              discipline  writes in fragments; before each it reads whatever is pending
              killed      the mover, of which one process is killed at a random time; as often as ROUNDS says
              stopped     the mover, of which one process is stopped until all others are through
   TOPOLOGY   ring (both neighbours) or all, followed by "+tcp" for TCP by loopback in place of Unix sockets
   BUFFER     SO_SNDBUF and SO_RCVBUF, 0: as they are

   Prints "ended", or "deadlock" where every process sleeps and none has moved a byte for a while, and figures. Other
   than 0 where bytes were wrong or a promise was broken. */
#include "both_ends.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

enum { MAX = 8 };

typedef struct asked_for {
    const char *how;
    int processes;
    bool is_ring, is_tcp;
    uint64_t bytes;
    int buffer;
    uint64_t fragment;
} asked_for;

/* Of all processes, in memory that they share. */
typedef struct shared {
    _Atomic uint64_t moved[MAX];
    _Atomic int stalled[MAX], through[MAX], lost[MAX];
    _Atomic uint64_t max_early[MAX];
    _Atomic int64_t more_memory[MAX];
    _Atomic int64_t killed_ns, noticed_ns;
} shared;

static asked_for asked_of;
static shared *seen;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool are_neighbours(int one, int other)
{
    const int n = asked_of.processes;
    return one != other &&
           (!asked_of.is_ring || (one + 1) % n == other || (other + 1) % n == one);
}

static int neighbours_of(int one)
{
    int count = 0;
    for (int i = 0; i < asked_of.processes; i++)
        count += are_neighbours(one, i);
    return count;
}

static uint64_t name_of(int from, int to)
{
    return (uint64_t)(from * MAX + to);
}

static void connected(int ends[2])
{
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof place;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(listener >= 0);
    if (asked_of.buffer > 0) /* before the window is agreed on */
        CHECK(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &asked_of.buffer, sizeof(int)) == 0);
    CHECK(bind(listener, (struct sockaddr *)&place, length) == 0 && listen(listener, 1) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&place, &length) == 0);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (asked_of.buffer > 0)
        CHECK(setsockopt(ends[0], SOL_SOCKET, SO_RCVBUF, &asked_of.buffer, sizeof(int)) == 0);
    CHECK(connect(ends[0], (struct sockaddr *)&place, length) == 0);
    ends[1] = accept(listener, NULL, NULL);
    CHECK(ends[1] >= 0);
    for (int i = 0; i < 2 && asked_of.buffer > 0; i++)
        CHECK(setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &asked_of.buffer, sizeof(int)) == 0);
    close(listener);
}

/* --- by blocking calls ------------------------------------------------------------------------ */

typedef struct channel {
    int file, other;
    unsigned char *out, *in;
    uint64_t written, read;
} channel;

static void read_some(channel *of, int self, int flags)
{
    while (of->read < asked_of.bytes) {
        const ssize_t bytes =
            recv(of->file, of->in + of->read, (size_t)(asked_of.bytes - of->read), flags);
        if (bytes < 0 && errno == EINTR)
            continue;
        if (bytes < 0 && errno == EAGAIN)
            return;
        if (bytes <= 0)
            _exit(3); /* the other end is gone: of a deadlock, which the parent ends */
        of->read += (uint64_t)bytes;
        atomic_fetch_add(&seen->moved[self], (uint64_t)bytes);
    }
}

static void write_fragment(channel *of, int self, uint64_t fragment)
{
    uint64_t left = asked_of.bytes - of->written;
    left = left < fragment ? left : fragment;
    while (left > 0) {
        const ssize_t bytes = send(of->file, of->out + of->written, (size_t)left, MSG_NOSIGNAL);
        if (bytes < 0 && errno == EINTR)
            continue;
        if (bytes <= 0)
            _exit(3);
        of->written += (uint64_t)bytes;
        left -= (uint64_t)bytes;
        atomic_fetch_add(&seen->moved[self], (uint64_t)bytes);
    }
}

/* Nothing is read before all is written. */
static void by_blocking(channel *channels, int count, int self)
{
    for (int i = 0; i < count; i++)
        write_fragment(&channels[i], self, asked_of.bytes);
    for (int i = 0; i < count; i++)
        read_some(&channels[i], self, 0);
}

/* Strumpen94, 3.1.3: between two writes everything is read that is pending; who has written all reads from all. */
static void by_discipline(channel *channels, int count, int self)
{
    bool writes = true;
    while (writes) {
        writes = false;
        for (int i = 0; i < count; i++) {
            if (channels[i].written == asked_of.bytes)
                continue;
            for (int j = 0; j < count; j++)
                read_some(&channels[j], self, MSG_DONTWAIT);
            write_fragment(&channels[i], self, asked_of.fragment);
            writes = true;
        }
    }
    for (;;) {
        struct pollfd files[MAX];
        nfds_t left = 0;
        for (int i = 0; i < count; i++) {
            read_some(&channels[i], self, MSG_DONTWAIT);
            if (channels[i].read < asked_of.bytes)
                files[left++] = (struct pollfd){.fd = channels[i].file, .events = POLLIN};
        }
        if (left == 0)
            return;
        CHECK(poll(files, left, -1) > 0 || errno == EINTR);
    }
}

/* --- by the mover ----------------------------------------------------------------------------- */

static int64_t memory_bytes(void)
{
    struct rusage used;
    CHECK(getrusage(RUSAGE_SELF, &used) == 0);
    return (int64_t)used.ru_maxrss * 1024;
}

static uint64_t room_for(int count)
{
    const uint64_t fragments = asked_of.bytes / asked_of.fragment + 1;
    return (asked_of.bytes + 64 * fragments) * (uint64_t)count;
}

static sluice_mover *opened(channel *channels, int count, uint64_t early_bytes)
{
    sluice_mover_options options = {.size = sizeof options, .fragment_bytes = asked_of.fragment};
    sluice_mover *mover;
    options.early_bytes = early_bytes;
    options.max_peers = (uint32_t)count;
    options.stall_ms = 100;
    OK(sluice_mover_open(&mover, &options));
    for (int i = 0; i < count; i++) {
        uint32_t peer;
        OK(sluice_mover_add_peer(mover, channels[i].file, &peer));
        CHECK(peer == (uint32_t)i);
    }
    return mover;
}

/* On a busy machine nothing may move for a while though it can. */
static int patiently(sluice_mover *mover, sluice_mover_ticket ticket)
{
    int code;
    do {
        code = sluice_mover_wait(mover, ticket, -1, NULL);
    } while (code == SLUICE_MOVER_E_STALLED);
    return code;
}

static void by_mover(channel *channels, int count, int self, bool is_tight)
{
    const int64_t memory = memory_bytes();
    const uint64_t room = is_tight ? room_for(count) / 10 : room_for(count);
    sluice_mover *mover = opened(channels, count, room);
    sluice_mover_ticket out[MAX], in[MAX];
    sluice_mover_statistics counted = {.size = sizeof counted};
    for (uint32_t i = 0; i < (uint32_t)count; i++)
        OK(sluice_mover_send(mover, i, 1, channels[i].out, asked_of.bytes, NULL, &out[i]));
    for (int i = 0; i < count; i++) {
        if (is_tight) { /* no receive is there anywhere: it cannot be through */
            EXPECT(SLUICE_MOVER_E_STALLED, sluice_mover_wait(mover, out[i], -1, NULL));
            atomic_fetch_add(&seen->stalled[self], 1);
        } else {
            OK(patiently(mover, out[i]));
        }
    }
    if (is_tight) /* nobody receives before all have seen it */
        for (int i = 0; i < asked_of.processes; i++)
            while (atomic_load(&seen->stalled[i]) < neighbours_of(i))
                nap(1);
    for (uint32_t i = 0; i < (uint32_t)count; i++)
        OK(sluice_mover_receive(mover, i, 1, channels[i].in, asked_of.bytes, NULL, &in[i]));
    for (int i = 0; i < count; i++) {
        OK(patiently(mover, in[i]));
        if (is_tight)
            OK(patiently(mover, out[i]));
        channels[i].read = asked_of.bytes;
    }
    OK(sluice_mover_get_statistics(mover, &counted));
    CHECK(counted.max_early_bytes <= room);
    atomic_store(&seen->max_early[self], counted.max_early_bytes);
    atomic_store(&seen->more_memory[self], memory_bytes() - memory - (int64_t)room);
    OK(sluice_mover_close(mover, SLUICE_MOVER_DRAIN, 60000));
}

/* Rounds with whoever is left, until the parent says that it is enough: who is gone fails its own messages. */
static void by_survivors(channel *channels, int count, int self)
{
    sluice_mover *mover = opened(channels, count, room_for(count) * 4);
    bool is_gone[MAX] = {false};
    for (int round = 0; round < 3 || atomic_load(&seen->lost[self]) == 0; round++) {
        sluice_mover_ticket out[MAX], in[MAX];
        for (uint32_t i = 0; i < (uint32_t)count; i++) {
            OK(sluice_mover_receive(mover, i, 1, channels[i].in, asked_of.bytes, NULL, &in[i]));
            OK(sluice_mover_send(mover, i, 1, channels[i].out, asked_of.bytes, NULL, &out[i]));
        }
        for (int i = 0; i < count; i++) {
            const int code = patiently(mover, in[i]), left = patiently(mover, out[i]);
            CHECK(code == SLUICE_MOVER_OK || code == SLUICE_MOVER_E_PEER);
            CHECK(left == SLUICE_MOVER_OK || left == SLUICE_MOVER_E_PEER);
            CHECK(code == SLUICE_MOVER_OK ? !is_gone[i] : true);
            if (code == SLUICE_MOVER_OK)
                CHECK(is_filled(channels[i].in, asked_of.bytes, name_of(channels[i].other, self)));
            if (code == SLUICE_MOVER_OK || is_gone[i])
                continue;
            is_gone[i] = true;
            if (atomic_fetch_add(&seen->lost[self], 1) == 0)
                atomic_store(&seen->noticed_ns, now_ns());
        }
        atomic_fetch_add(&seen->through[self], 1);
    }
    /* Survivors stop in different rounds, so that each sees others go too. */
    OK(sluice_mover_close(mover, SLUICE_MOVER_ABORT, 0));
}

/* All exchange round by round; who was stopped comes later, and the others do not wait for it. */
static void by_patience(channel *channels, int count, int self)
{
    sluice_mover *mover = opened(channels, count, room_for(count) * 2);
    sluice_mover_ticket out[MAX], in[MAX];
    for (uint32_t i = 0; i < (uint32_t)count; i++) {
        OK(sluice_mover_receive(mover, i, 1, channels[i].in, asked_of.bytes, NULL, &in[i]));
        OK(sluice_mover_send(mover, i, 1, channels[i].out, asked_of.bytes, NULL, &out[i]));
    }
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < count; i++) {
            const bool is_stopped = channels[i].other == 0 && self != 0;
            if (is_stopped != (turn == 1))
                continue;
            OK(patiently(mover, in[i]));
            OK(patiently(mover, out[i]));
            CHECK(is_filled(channels[i].in, asked_of.bytes, name_of(channels[i].other, self)));
        }
        if (turn == 0)
            atomic_fetch_add(&seen->through[self], 1); /* among themselves */
    }
    OK(sluice_mover_close(mover, SLUICE_MOVER_DRAIN, 60000));
}

/* --- processes -------------------------------------------------------------------------------- */

static void one_process(channel *channels, int count, int self)
{
    const char *how = asked_of.how;
    for (int i = 0; i < count; i++) {
        channels[i].out = malloc((size_t)asked_of.bytes + 1);
        channels[i].in = calloc(1, (size_t)asked_of.bytes + 1);
        CHECK(channels[i].out && channels[i].in);
        fill(channels[i].out, asked_of.bytes, name_of(self, channels[i].other));
        memset(channels[i].in, 1, (size_t)asked_of.bytes); /* its pages are there */
    }
    if (strcmp(how, "blocking") == 0)
        by_blocking(channels, count, self);
    else if (strcmp(how, "discipline") == 0)
        by_discipline(channels, count, self);
    else if (strcmp(how, "killed") == 0)
        by_survivors(channels, count, self);
    else if (strcmp(how, "stopped") == 0)
        by_patience(channels, count, self);
    else
        by_mover(channels, count, self, strcmp(how, "tight") == 0);
    for (int i = 0; i < count; i++) {
        if (strcmp(how, "killed") != 0)
            CHECK(is_filled(channels[i].in, asked_of.bytes, name_of(channels[i].other, self)));
        free(channels[i].out);
        free(channels[i].in);
    }
}

static void started(pid_t *children)
{
    static int files[MAX][MAX];
    const int n = asked_of.processes;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            int ends[2];
            if (!are_neighbours(i, j))
                continue;
            if (asked_of.is_tcp)
                connected(ends);
            else
                pair_of(ends, asked_of.buffer);
            files[i][j] = ends[0];
            files[j][i] = ends[1];
        }
    for (int self = 0; self < n; self++) {
        children[self] = fork();
        CHECK(children[self] >= 0);
        if (children[self] > 0)
            continue;
        channel channels[MAX];
        int count = 0;
        memset(channels, 0, sizeof channels);
        CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                if (!are_neighbours(i, j))
                    continue;
                if (i != self)
                    close(files[i][j]);
                else
                    channels[count++] = (channel){.file = files[i][j], .other = j};
            }
        one_process(channels, count, self);
        exit(0); /* with the leak checker's last look */
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            if (are_neighbours(i, j))
                close(files[i][j]);
}

static char state_of(pid_t process)
{
    char path[64], text[512] = "";
    FILE *file;
    const char *end;
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    file = fopen(path, "r");
    if (file == NULL)
        return 'X';
    if (fgets(text, sizeof text, file) == NULL)
        text[0] = 0;
    fclose(file);
    end = strrchr(text, ')');
    return end != NULL && end[1] == ' ' ? end[2] : 'X';
}

/* Whether all that are left sleep: a process that only waits for a processor does not. */
static bool all_sleep(const pid_t *children)
{
    for (int i = 0; i < asked_of.processes; i++)
        if (children[i] > 0 && state_of(children[i]) != 'S')
            return false;
    return true;
}

static uint64_t moved_in_all(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < asked_of.processes; i++)
        sum += atomic_load(&seen->moved[i]);
    return sum;
}

/* Wait for all, or until none will ever move again. By loopback a byte that is on its way arrives within moments;
   by Unix sockets it is there at once. */
static bool all_end(pid_t *children, bool may_hang)
{
    const int looks = asked_of.is_tcp ? 40 : 6;
    uint64_t moved = moved_in_all();
    int quiet = 0, left = asked_of.processes;
    while (left > 0) {
        for (int i = 0; i < asked_of.processes; i++) {
            int status;
            if (children[i] <= 0 || waitpid(children[i], &status, WNOHANG) == 0)
                continue;
            CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
                  (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
            children[i] = 0;
            left--;
            quiet = 0;
        }
        if (left == 0)
            break;
        quiet = all_sleep(children) && moved_in_all() == moved ? quiet + 1 : 0;
        moved = moved_in_all();
        if (may_hang && quiet >= looks) {
            for (int i = 0; i < asked_of.processes; i++)
                if (children[i] > 0) {
                    kill(children[i], SIGKILL);
                    waitpid(children[i], NULL, 0);
                }
            return false;
        }
        nap(may_hang ? 25 : 2);
    }
    return true;
}

/* What a channel takes of which nobody reads, in writes of a fragment. */
static uint64_t usable_bytes(void)
{
    static unsigned char nothing[1 << 20];
    uint64_t bytes = 0;
    int ends[2];
    ssize_t written;
    if (asked_of.is_tcp)
        connected(ends);
    else
        pair_of(ends, asked_of.buffer);
    for (int quiet = 0; quiet < 3; quiet++)
        while ((written = send(ends[0], nothing, sizeof nothing, MSG_DONTWAIT)) > 0) {
            bytes += (uint64_t)written;
            nap(1);
        }
    close(ends[0]);
    close(ends[1]);
    return bytes;
}

static void once(uint64_t *seed)
{
    pid_t children[MAX];
    const bool may_hang =
        strcmp(asked_of.how, "blocking") == 0 || strcmp(asked_of.how, "discipline") == 0;
    memset(seen, 0, sizeof *seen);
    started(children);
    if (strcmp(asked_of.how, "killed") == 0) {
        const int victim = (int)drawn(seed, (uint64_t)asked_of.processes);
        const int64_t until = now_ns() + (int64_t)drawn(seed, 20000000);
        while (now_ns() < until)
            nap(1);
        atomic_store(&seen->killed_ns, now_ns());
        CHECK(kill(children[victim], SIGKILL) == 0);
    }
    if (strcmp(asked_of.how, "stopped") == 0) {
        CHECK(kill(children[0], SIGSTOP) == 0);
        for (int i = 1; i < asked_of.processes; i++)
            while (atomic_load(&seen->through[i]) == 0)
                nap(1);
        CHECK(kill(children[0], SIGCONT) == 0);
    }
    if (!all_end(children, may_hang)) {
        printf("deadlock\n");
        exit(0);
    }
}

int main(int count, char **words)
{
    uint64_t rounds, seed, early = 0;
    int64_t memory = 0, noticed_ns = 0;
    CHECK(count >= 7);
    asked_of = (asked_for){.how = words[1],
                           .processes = atoi(words[2]),
                           .is_ring = strncmp(words[3], "ring", 4) == 0,
                           .is_tcp = strstr(words[3], "+tcp") != NULL,
                           .bytes = strtoull(words[4], NULL, 10),
                           .buffer = atoi(words[5]),
                           .fragment = strtoull(words[6], NULL, 10)};
    rounds = count > 7 ? strtoull(words[7], NULL, 10) : 1;
    seed = count > 8 ? strtoull(words[8], NULL, 10) : 1;
    CHECK(asked_of.processes >= 2 && asked_of.processes <= MAX && asked_of.fragment > 0);
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(seen != MAP_FAILED);
    if (strcmp(asked_of.how, "usable") == 0) {
        printf("%" PRIu64 "\n", usable_bytes());
        return 0;
    }
    for (uint64_t round = 0; round < rounds; round++) {
        once(&seed);
        for (int i = 0; i < asked_of.processes; i++) {
            if (atomic_load(&seen->more_memory[i]) > memory)
                memory = atomic_load(&seen->more_memory[i]);
            if (atomic_load(&seen->max_early[i]) > early)
                early = atomic_load(&seen->max_early[i]);
        }
        if (atomic_load(&seen->noticed_ns) - atomic_load(&seen->killed_ns) > noticed_ns)
            noticed_ns = atomic_load(&seen->noticed_ns) - atomic_load(&seen->killed_ns);
    }
    printf("ended, %" PRIu64 " early bytes, %" PRId64 " bytes beyond the budget, noticed within "
           "%.1f ms\n", early, memory, (double)noticed_ns / 1e6);
    return 0;
}
