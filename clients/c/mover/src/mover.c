/* SPDX-License-Identifier: Apache-2.0 */
/* What callers see: opening, tickets, waiting, closing, texts. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MS_NS INT64_C(1000000)

static const sluice_mover_options DEFAULTS = {
    .fragment_bytes = 4096,
    .max_fragment_bytes = 4u << 20,
    .early_bytes = 64u << 20,
    .max_peers = 16,
    .max_tickets = 4096,
    .stall_ms = 10000,
};

int64_t slm_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int slm_check(const sluice_mover *mover)
{
    if (mover == NULL)
        return SLUICE_MOVER_E_ARGUMENT;
    return *(const volatile uint32_t *)mover->is_here ? SLUICE_MOVER_OK : SLUICE_MOVER_E_FORK;
}

/* What a caller's structure says of itself: the part that it knows, the rest zero. */
static bool taken(void *into, size_t room, const void *from)
{
    uint64_t size;
    memset(into, 0, room);
    if (from == NULL)
        return true;
    memcpy(&size, from, sizeof size);
    if (size < sizeof size)
        return false;
    memcpy(into, from, size < room ? (size_t)size : room);
    return true;
}

/* The other way round. */
static bool given(void *to, const void *from, size_t room)
{
    uint64_t size;
    if (to == NULL)
        return false;
    memcpy(&size, to, sizeof size);
    if (size < sizeof size)
        return false;
    size = size < room ? size : room;
    memcpy(to, from, (size_t)size);
    memcpy(to, &size, sizeof size);
    return true;
}

/* --- opening and closing ---------------------------------------------------------------------- */

static bool chosen(sluice_mover_options *options, const sluice_mover_options *asked)
{
    if (!taken(options, sizeof *options, asked))
        return false;
    if (options->fragment_bytes == 0)
        options->fragment_bytes = DEFAULTS.fragment_bytes;
    if (options->max_fragment_bytes == 0)
        options->max_fragment_bytes = DEFAULTS.max_fragment_bytes;
    if (options->early_bytes == 0)
        options->early_bytes = DEFAULTS.early_bytes;
    if (options->max_peers == 0)
        options->max_peers = DEFAULTS.max_peers;
    if (options->max_tickets == 0)
        options->max_tickets = DEFAULTS.max_tickets;
    if (options->stall_ms == 0)
        options->stall_ms = DEFAULTS.stall_ms;
    return options->max_fragment_bytes <= 1u << 30 && options->max_peers <= 1024 &&
           options->max_tickets <= 1u << 20 && options->early_bytes <= UINT64_C(1) << 62 &&
           options->send_buffer_bytes <= INT32_MAX && options->receive_buffer_bytes <= INT32_MAX;
}

static void released(sluice_mover *mover)
{
    for (uint32_t i = 0; i < mover->peer_count; i++) {
        free(mover->peers[i]->packing);
        free(mover->peers[i]->staging);
        free(mover->peers[i]);
    }
    for (uint32_t i = 0; mover->transfers != NULL && i < mover->options.max_tickets; i++)
        free(mover->transfers[i].left);
    if (mover->doorbell >= 0)
        close(mover->doorbell);
    if (mover->watch >= 0)
        close(mover->watch);
    if (mover->is_here != NULL)
        munmap(mover->is_here, (size_t)sysconf(_SC_PAGESIZE));
    free(mover->peers);
    free(mover->free_places);
    free(mover->transfers);
    free(mover);
}

static int allocated(sluice_mover *mover)
{
    const uint32_t tickets = mover->options.max_tickets;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct epoll_event rung = {.events = EPOLLIN, .data.u32 = SLM_DOORBELL};
    void *mapped;
    mover->transfers = calloc(tickets, sizeof *mover->transfers);
    mover->free_places = calloc(tickets, sizeof *mover->free_places);
    mover->peers = calloc(mover->options.max_peers, sizeof *mover->peers);
    if (mover->transfers == NULL || mover->free_places == NULL || mover->peers == NULL)
        return SLUICE_MOVER_E_MEMORY;
    for (uint32_t i = 0; i < tickets; i++)
        mover->free_places[i] = tickets - 1 - i;
    mover->free_count = tickets;
    mapped = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return SLUICE_MOVER_E_MEMORY;
    mover->is_here = mapped;
    if (madvise(mapped, page, MADV_WIPEONFORK) != 0)
        return SLUICE_MOVER_E_SYSTEM;
    *mover->is_here = 1;
    mover->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    mover->watch = epoll_create1(EPOLL_CLOEXEC);
    return mover->doorbell >= 0 && mover->watch >= 0 &&
                   epoll_ctl(mover->watch, EPOLL_CTL_ADD, mover->doorbell, &rung) == 0
               ? SLUICE_MOVER_OK
               : SLUICE_MOVER_E_SYSTEM;
}

/* Waits are by the clock that nobody sets. */
static int made_locks(sluice_mover *mover)
{
    pthread_condattr_t attributes;
    int failed = pthread_condattr_init(&attributes);
    if (failed != 0)
        return failed;
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    failed = pthread_cond_init(&mover->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    if (failed != 0)
        return failed;
    failed = pthread_mutex_init(&mover->lock, NULL);
    if (failed != 0)
        pthread_cond_destroy(&mover->changed);
    return failed;
}

/* Every signal is the program's own business: handlers run in its threads. */
static int started(sluice_mover *mover)
{
    sigset_t all, before;
    int failed;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&mover->agent, NULL, slm_agent, mover);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

int sluice_mover_open(sluice_mover **opened, const sluice_mover_options *options)
{
    sluice_mover *mover;
    int code, failed;
    if (opened == NULL)
        return SLUICE_MOVER_E_ARGUMENT;
    mover = calloc(1, sizeof *mover);
    if (mover == NULL)
        return SLUICE_MOVER_E_MEMORY;
    mover->doorbell = mover->watch = -1;
    list_init(&mover->submitted);
    list_init(&mover->cancelling);
    if (!chosen(&mover->options, options)) {
        released(mover);
        return SLUICE_MOVER_E_ARGUMENT;
    }
    mover->window = mover->options.early_bytes / mover->options.max_peers;
    code = allocated(mover);
    if (code == SLUICE_MOVER_OK && (failed = made_locks(mover)) != 0) {
        errno = failed;
        code = SLUICE_MOVER_E_SYSTEM;
    } else if (code == SLUICE_MOVER_OK && (failed = started(mover)) != 0) {
        pthread_mutex_destroy(&mover->lock);
        pthread_cond_destroy(&mover->changed);
        errno = failed;
        code = SLUICE_MOVER_E_SYSTEM;
    }
    if (code != SLUICE_MOVER_OK) {
        failed = errno;
        released(mover);
        errno = failed;
        return code;
    }
    *opened = mover;
    return SLUICE_MOVER_OK;
}

/* Guarded by the lock: whether the agent has to be rung for, once. */
static bool is_rung(sluice_mover *mover)
{
    const bool was_sleeping = mover->is_sleeping;
    mover->is_sleeping = false;
    return was_sleeping;
}

static void ring(const sluice_mover *mover)
{
    const uint64_t one = 1;
    ssize_t written;
    do {
        written = write(mover->doorbell, &one, sizeof one);
    } while (written < 0 && errno == EINTR);
}

void slm_wake(sluice_mover *mover)
{
    bool rings;
    pthread_mutex_lock(&mover->lock);
    rings = is_rung(mover);
    pthread_mutex_unlock(&mover->lock);
    if (rings)
        ring(mover);
}

int sluice_mover_close(sluice_mover *mover, int ending, uint32_t timeout_ms)
{
    bool has_drained, rings;
    if (mover == NULL)
        return SLUICE_MOVER_OK;
    if (slm_check(mover) != SLUICE_MOVER_OK) { /* in a child: the lock may be held by nobody */
        for (uint32_t i = 0; i < mover->peer_count; i++)
            if (mover->peers[i]->socket >= 0)
                close(mover->peers[i]->socket);
        slm_trace_forget(mover); /* the agent that traced is the parent's: another mover may here */
        released(mover);
        return SLUICE_MOVER_E_FORK;
    }
    if (ending != SLUICE_MOVER_ABORT && ending != SLUICE_MOVER_DRAIN)
        return SLUICE_MOVER_E_ARGUMENT;
    pthread_mutex_lock(&mover->lock);
    mover->is_ending = true;
    mover->ending = ending;
    mover->deadline_ns = slm_now_ns() + timeout_ms * MS_NS;
    rings = is_rung(mover);
    pthread_mutex_unlock(&mover->lock);
    if (rings)
        ring(mover);
    pthread_join(mover->agent, NULL);
    pthread_mutex_lock(&mover->lock);
    while (mover->waiting > 0)
        pthread_cond_wait(&mover->changed, &mover->lock);
    has_drained = mover->has_drained;
    pthread_mutex_unlock(&mover->lock);
    slm_trace_forget(mover);
    pthread_mutex_destroy(&mover->lock);
    pthread_cond_destroy(&mover->changed);
    released(mover);
    return ending == SLUICE_MOVER_ABORT || has_drained ? SLUICE_MOVER_OK : SLUICE_MOVER_E_TIMEOUT;
}

/* --- peers ------------------------------------------------------------------------------------ */

static bool is_connected_stream(int socket)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    int type = 0;
    socklen_t room = sizeof type;
    if (getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &room) != 0)
        return false;
    if (type != SOCK_STREAM) {
        errno = EPROTOTYPE;
        return false;
    }
    return getpeername(socket, (struct sockaddr *)&address, &length) == 0;
}

static uint64_t buffer_of(int socket, int which, uint64_t asked)
{
    int bytes = (int)asked;
    socklen_t room = sizeof bytes;
    if (asked > 0)
        (void)setsockopt(socket, SOL_SOCKET, which, &bytes, sizeof bytes);
    return getsockopt(socket, SOL_SOCKET, which, &bytes, &room) == 0 ? (uint64_t)bytes : 0;
}

static peer *new_peer(const sluice_mover *mover, int socket)
{
    peer *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->socket = socket;
    list_init(&made->fresh);
    list_init(&made->active);
    list_init(&made->held);
    list_init(&made->aborting);
    list_init(&made->granting);
    for (int i = 0; i < BUCKETS; i++) {
        list_init(&made->numbered[i]);
        list_init(&made->posted[i]);
        list_init(&made->early[i]);
        list_init(&made->coming[i]);
    }
    /* What it may send is granted by the first frame. */
    made->owed = mover->window;
    made->owed_records = RECORDS;
    made->is_needed = true;
    made->is_writable = true;
    return made;
}

int sluice_mover_add_peer(sluice_mover *mover, int socket, uint32_t *number)
{
    const int yes = 1;
    int code = slm_check(mover);
    bool rings = false;
    peer *made;
    if (code != SLUICE_MOVER_OK)
        return code;
    if (number == NULL || socket < 0)
        return SLUICE_MOVER_E_ARGUMENT;
    if (!is_connected_stream(socket) || fcntl(socket, F_SETFD, FD_CLOEXEC) != 0)
        return SLUICE_MOVER_E_SYSTEM;
    made = new_peer(mover, socket);
    if (made == NULL)
        return SLUICE_MOVER_E_MEMORY;
    /* Of a Unix socket it is refused, and nothing is lost. */
    (void)setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    made->send_buffer_bytes = buffer_of(socket, SO_SNDBUF, mover->options.send_buffer_bytes);
    made->receive_buffer_bytes = buffer_of(socket, SO_RCVBUF, mover->options.receive_buffer_bytes);
    pthread_mutex_lock(&mover->lock);
    if (mover->is_ending) {
        code = SLUICE_MOVER_E_CLOSED;
    } else if (mover->peer_count == mover->options.max_peers) {
        code = SLUICE_MOVER_E_LIMIT;
    } else {
        made->number = *number = mover->peer_count;
        mover->peers[mover->peer_count++] = made;
        rings = is_rung(mover);
    }
    pthread_mutex_unlock(&mover->lock);
    if (code != SLUICE_MOVER_OK)
        free(made);
    if (rings)
        ring(mover);
    return code;
}

int sluice_mover_peer_state(sluice_mover *mover, uint32_t number, sluice_mover_peer *state)
{
    sluice_mover_peer found = {0};
    const int code = slm_check(mover);
    peer *asked = NULL;
    if (code != SLUICE_MOVER_OK)
        return code;
    pthread_mutex_lock(&mover->lock);
    if (number < mover->peer_count)
        asked = mover->peers[number];
    pthread_mutex_unlock(&mover->lock);
    if (asked == NULL)
        return SLUICE_MOVER_E_ARGUMENT;
    found.code = atomic_load(&asked->code);
    found.error = atomic_load(&asked->error);
    found.credit_bytes = relaxed(&asked->credit);
    found.send_buffer_bytes = asked->send_buffer_bytes;
    found.receive_buffer_bytes = asked->receive_buffer_bytes;
    return given(state, &found, sizeof found) ? SLUICE_MOVER_OK : SLUICE_MOVER_E_ARGUMENT;
}

/* --- tickets ---------------------------------------------------------------------------------- */

/* A place and the generation of what has it; generations begin at 1, so that no ticket is 0. */
static sluice_mover_ticket ticket_of(const sluice_mover *mover, const transfer *one)
{
    return (uint64_t)one->generation << 32 | (uint64_t)(one - mover->transfers);
}

/* Guarded by the lock: what the ticket is for, null where its result was taken. */
static transfer *found(const sluice_mover *mover, sluice_mover_ticket ticket)
{
    const uint32_t place = (uint32_t)ticket, generation = (uint32_t)(ticket >> 32);
    transfer *one;
    if (place >= mover->options.max_tickets)
        return NULL;
    one = &mover->transfers[place];
    return one->state != FREE && one->generation == generation ? one : NULL;
}

/* Guarded by the lock: a place of its own, empty but for its generation. */
static transfer *new_transfer(sluice_mover *mover)
{
    transfer *one;
    uint32_t generation;
    if (mover->free_count == 0)
        return NULL;
    one = &mover->transfers[mover->free_places[--mover->free_count]];
    generation = one->generation + 1;
    memset(one, 0, sizeof *one);
    one->generation = generation == 0 ? 1 : generation;
    one->state = LIVE;
    list_init(&one->place);
    list_init(&one->cancelling);
    list_init(&one->by_number);
    return one;
}

static int submitted(sluice_mover *mover, const transfer *asked, const sluice_mover_how *how,
                     sluice_mover_ticket *ticket)
{
    sluice_mover_how wanted;
    int code = slm_check(mover);
    bool rings = false;
    if (code != SLUICE_MOVER_OK)
        return code;
    if (ticket == NULL || !taken(&wanted, sizeof wanted, how))
        return SLUICE_MOVER_E_ARGUMENT;
    if (asked->buffer == NULL && asked->bytes > 0 &&
        !(asked->is_send ? wanted.pack != NULL : wanted.unpack != NULL))
        return SLUICE_MOVER_E_ARGUMENT;
    pthread_mutex_lock(&mover->lock);
    if (mover->is_ending) {
        code = SLUICE_MOVER_E_CLOSED;
    } else if (asked->peer >= mover->peer_count) {
        code = SLUICE_MOVER_E_ARGUMENT;
    } else {
        transfer *one = new_transfer(mover);
        if (one == NULL) {
            code = SLUICE_MOVER_E_LIMIT;
        } else {
            one->is_send = asked->is_send;
            one->peer = asked->peer;
            one->tag = asked->tag;
            one->buffer = asked->buffer;
            one->bytes = asked->bytes;
            one->how = wanted;
            atomic_store_explicit(&one->total, asked->bytes, memory_order_relaxed);
            list_append(&mover->submitted, &one->place);
            *ticket = ticket_of(mover, one);
            rings = is_rung(mover);
        }
    }
    pthread_mutex_unlock(&mover->lock);
    if (rings)
        ring(mover);
    return code;
}

int sluice_mover_send(sluice_mover *mover, uint32_t to, uint32_t tag, const void *from,
                      uint64_t bytes, const sluice_mover_how *how, sluice_mover_ticket *ticket)
{
    /* The agent only reads from the buffer of a send. */
    const transfer asked = {
        .is_send = true, .peer = to, .tag = tag, .buffer = (unsigned char *)(uintptr_t)from,
        .bytes = bytes};
    return submitted(mover, &asked, how, ticket);
}

int sluice_mover_receive(sluice_mover *mover, uint32_t from, uint32_t tag, void *to,
                         uint64_t bytes, const sluice_mover_how *how, sluice_mover_ticket *ticket)
{
    const transfer asked = {.peer = from, .tag = tag, .buffer = to, .bytes = bytes};
    return submitted(mover, &asked, how, ticket);
}

int sluice_mover_cancel(sluice_mover *mover, sluice_mover_ticket ticket)
{
    int code = slm_check(mover);
    bool rings = false;
    transfer *one;
    if (code != SLUICE_MOVER_OK)
        return code;
    pthread_mutex_lock(&mover->lock);
    one = found(mover, ticket);
    if (one == NULL) {
        code = SLUICE_MOVER_E_ARGUMENT;
    } else if (one->state == LIVE && !one->is_cancelled) {
        one->is_cancelled = true;
        list_append(&mover->cancelling, &one->cancelling);
        rings = is_rung(mover);
    }
    pthread_mutex_unlock(&mover->lock);
    if (rings)
        ring(mover);
    return code;
}

void slm_free_ticket(sluice_mover *mover, transfer *one)
{
    free(one->left);
    one->left = NULL;
    one->state = FREE;
    mover->free_places[mover->free_count++] = (uint32_t)(one - mover->transfers);
}

void slm_leave(sluice_mover *mover, sluice_mover_ticket ticket, void *memory)
{
    const uint32_t generation = (uint32_t)(ticket >> 32);
    transfer *one;
    bool rings;
    pthread_mutex_lock(&mover->lock);
    one = found(mover, ticket);
    if (one == NULL || one->state == DONE) {
        if (one != NULL)
            slm_free_ticket(mover, one);
        pthread_mutex_unlock(&mover->lock);
        free(memory);
        return;
    }
    one->left = memory;
    one->is_cancelled = true;
    list_append(&mover->cancelling, &one->cancelling);
    mover->waiting++;
    rings = is_rung(mover);
    if (rings) {
        pthread_mutex_unlock(&mover->lock);
        ring(mover);
        pthread_mutex_lock(&mover->lock);
    }
    /* The agent is never long in coming: it waits for no peer. */
    while (one->generation == generation && one->state == LIVE && !one->is_quiet)
        pthread_cond_wait(&mover->changed, &mover->lock);
    mover->waiting--;
    if (mover->is_ending && mover->waiting == 0)
        pthread_cond_broadcast(&mover->changed);
    pthread_mutex_unlock(&mover->lock);
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* Guarded by the lock. A number that changes while there is hope: of a message that waits for credit, and of
   a receive, its own bytes; of another send all that its peer takes, for they share one connection. */
static uint64_t progress_of(const sluice_mover *mover, const transfer *one)
{
    if (!one->is_send || atomic_load_explicit(&one->is_held, memory_order_relaxed))
        return relaxed(&one->moved);
    return relaxed(&mover->peers[one->peer]->moved);
}

static void reported(const sluice_mover *mover, const transfer *one, int code,
                     sluice_mover_report *report)
{
    sluice_mover_report made = {
        .code = code, .is_send = one->is_send, .peer = one->peer, .tag = one->tag};
    if (report == NULL)
        return;
    made.message_bytes = relaxed(&one->total);
    made.moved_bytes = relaxed(&one->moved);
    made.fragments = relaxed(&one->fragments);
    made.credit_bytes = relaxed(&mover->peers[one->peer]->credit);
    made.begin_ns = atomic_load_explicit(&one->begin_ns, memory_order_relaxed);
    made.end_ns = atomic_load_explicit(&one->end_ns, memory_order_relaxed);
    made.busy_ns = atomic_load_explicit(&one->busy_ns, memory_order_relaxed);
    (void)given(report, &made, sizeof made);
}

static void sleep_until(sluice_mover *mover, int64_t until_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                                   .tv_nsec = (long)(until_ns % 1000000000)};
    if (until_ns == INT64_MAX)
        pthread_cond_wait(&mover->changed, &mover->lock);
    else
        pthread_cond_timedwait(&mover->changed, &mover->lock, &until);
}

/* Guarded by the lock: until the ticket is done, or why not. The place may be another ticket's afterwards. */
static int waited(sluice_mover *mover, transfer *one, uint32_t generation, int timeout_ms)
{
    const int64_t begin = slm_now_ns();
    const int64_t end = timeout_ms < 0 ? INT64_MAX : begin + timeout_ms * MS_NS;
    const int64_t stall_ns = mover->options.stall_ms * MS_NS;
    uint64_t progress = progress_of(mover, one);
    int64_t since = begin, now = begin;
    while (one->generation == generation && one->state == LIVE) {
        const uint64_t latest = progress_of(mover, one);
        if (latest != progress) {
            progress = latest;
            since = now;
        }
        if (now >= end)
            return SLUICE_MOVER_E_TIMEOUT;
        if (mover->options.never_stall) {
            sleep_until(mover, end);
        } else {
            if (now - since >= stall_ns)
                return SLUICE_MOVER_E_STALLED;
            sleep_until(mover, end < since + stall_ns ? end : since + stall_ns);
        }
        now = slm_now_ns();
    }
    return one->generation == generation && one->state == DONE ? one->code : SLUICE_MOVER_E_ARGUMENT;
}

int sluice_mover_wait(sluice_mover *mover, sluice_mover_ticket ticket, int timeout_ms,
                      sluice_mover_report *report)
{
    int code = slm_check(mover);
    transfer *one;
    if (code != SLUICE_MOVER_OK)
        return code;
    if (report != NULL && report->size < sizeof report->size)
        return SLUICE_MOVER_E_ARGUMENT;
    pthread_mutex_lock(&mover->lock);
    one = found(mover, ticket);
    if (one == NULL) {
        code = SLUICE_MOVER_E_ARGUMENT;
    } else {
        const uint32_t generation = one->generation;
        mover->waiting++;
        if (one->state == LIVE)
            code = timeout_ms == 0 ? SLUICE_MOVER_E_TIMEOUT
                                   : waited(mover, one, generation, timeout_ms);
        else
            code = one->code;
        if (one->generation == generation && one->state != FREE) {
            reported(mover, one, code, report);
            if (one->state == DONE)
                slm_free_ticket(mover, one);
        }
        mover->waiting--;
        if (mover->is_ending && mover->waiting == 0)
            pthread_cond_broadcast(&mover->changed);
    }
    pthread_mutex_unlock(&mover->lock);
    return code;
}

int sluice_mover_test(sluice_mover *mover, sluice_mover_ticket ticket, sluice_mover_report *report)
{
    return sluice_mover_wait(mover, ticket, 0, report);
}

int sluice_mover_get_statistics(sluice_mover *mover, sluice_mover_statistics *statistics)
{
    sluice_mover_statistics latest;
    const int code = slm_check(mover);
    if (code != SLUICE_MOVER_OK)
        return code;
    pthread_mutex_lock(&mover->lock);
    latest = mover->published;
    pthread_mutex_unlock(&mover->lock);
    return given(statistics, &latest, sizeof latest) ? SLUICE_MOVER_OK : SLUICE_MOVER_E_ARGUMENT;
}

/* --- texts ------------------------------------------------------------------------------------ */

const char *sluice_mover_error_text(int code)
{
    switch (code) {
    case SLUICE_MOVER_OK: return "success";
    case SLUICE_MOVER_E_ARGUMENT: return "an argument that is none, or a ticket that was used up";
    case SLUICE_MOVER_E_SYSTEM: return "the operating system refused";
    case SLUICE_MOVER_E_MEMORY: return "out of memory";
    case SLUICE_MOVER_E_TIMEOUT: return "not yet done";
    case SLUICE_MOVER_E_STALLED: return "stalled";
    case SLUICE_MOVER_E_PEER: return "the peer is gone";
    case SLUICE_MOVER_E_PROTOCOL: return "the peer broke the protocol";
    case SLUICE_MOVER_E_TRUNCATED: return "longer than the buffer";
    case SLUICE_MOVER_E_CANCELLED: return "cancelled";
    case SLUICE_MOVER_E_CLOSED: return "the mover was closed";
    case SLUICE_MOVER_E_LIMIT: return "too many peers or tickets";
    case SLUICE_MOVER_E_FORK: return "the mover belongs to the parent process";
    case SLUICE_MOVER_E_CALLBACK: return "pack, unpack or the receiver of samples refused";
    case SLUICE_MOVER_E_BUSY: return "another mover of the process is tracing";
    case SLUICE_MOVER_E_CLOCK: return "the peer is on another machine and has another clock";
    default: return sluice_error_text(code);
    }
}

size_t sluice_mover_describe(const sluice_mover_report *report, char *text, size_t room)
{
    int length;
    if (report == NULL || (text == NULL && room > 0))
        return 0;
    length = snprintf(text, room,
                      "%s: %s peer %u, tag %u: %llu of %llu bytes, credit %llu bytes",
                      sluice_mover_error_text(report->code),
                      report->is_send ? "send to" : "receive from", report->peer, report->tag,
                      (unsigned long long)report->moved_bytes,
                      (unsigned long long)report->message_bytes,
                      (unsigned long long)report->credit_bytes);
    return length > 0 ? (size_t)length : 0;
}

#define WORDS(number) #number
#define TEXT(number) WORDS(number)

const char *sluice_mover_version(void)
{
    return TEXT(SLUICE_MOVER_VERSION_MAJOR) "." TEXT(SLUICE_MOVER_VERSION_MINOR) "." TEXT(
        SLUICE_MOVER_VERSION_PATCH);
}
