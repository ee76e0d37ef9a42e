/* SPDX-License-Identifier: Apache-2.0 */
/* The agent: one thread that sleeps in epoll_wait and nowhere else.

   In each turn it takes what was submitted, asks which sockets are ready, and reads once and writes once for each.
   It reads whenever something is readable, whatever it has to write and whoever waits for what. That is all that
   freedom from deadlock needs (docs/mover.md): were agents to wait for each other in a cycle, each would wait to write
   to the next, whose receive buffer is full; but the next agent reads it. What it reads has a place, since peers
   send no more early bytes than they have credit for. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

void slm_finish(sluice_mover *mover, transfer *one, int code)
{
    if (one->has_cut) {
        sluice_live_leave(mover->options.table, &one->reading);
        one->has_cut = false;
    }
    if (code == SLUICE_MOVER_OK)
        set_time(&one->end_ns, slm_now_ns());
    pthread_mutex_lock(&mover->lock);
    list_remove(&one->cancelling);
    one->code = code;
    one->state = DONE;
    if (one->left != NULL) /* nobody asks for its result */
        slm_free_ticket(mover, one);
    mover->published = mover->counted;
    if (mover->waiting > 0)
        pthread_cond_broadcast(&mover->changed);
    pthread_mutex_unlock(&mover->lock);
}

void slm_end_peer(sluice_mover *mover, peer *one, int code, int error)
{
    if (one->socket < 0)
        return;
    /* By itself it would stay watched while the child of a fork has it open. */
    (void)epoll_ctl(mover->watch, EPOLL_CTL_DEL, one->socket, NULL);
    close(one->socket);
    one->socket = -1;
    if (error != 0) /* else what a write said before stays */
        atomic_store(&one->error, error);
    atomic_store(&one->code, code);
    slm_drop_sends(mover, one, code);
    slm_drop_incoming(mover, one, code, false);
}

/* --- what callers want ------------------------------------------------------------------------ */

static void began(sluice_mover *mover, transfer *one)
{
    peer *with = mover->peers[one->peer];
    if (one->is_send)
        slm_begin_send(mover, with, one);
    else
        slm_begin_receive(mover, with, one);
}

static void cancelled(sluice_mover *mover, transfer *one)
{
    peer *with = mover->peers[one->peer];
    if (one->is_send)
        slm_cancel_send(mover, with, one);
    else
        slm_cancel_receive(mover, with, one);
}

/* Move a list that the lock guards to one of the agent's own. */
static void moved(entry *from, entry *to)
{
    list_init(to);
    if (list_empty(from))
        return;
    *to = *from;
    to->next->before = to->before->next = to;
    list_init(from);
}

/* Take all that was asked for since the last turn; how many peers there are. Whoever asks for something from here
   on rings, so that the agent does not sleep over it. */
static uint32_t taken(sluice_mover *mover, bool *is_ending)
{
    entry begun;
    uint32_t peers;
    pthread_mutex_lock(&mover->lock);
    moved(&mover->submitted, &begun);
    peers = mover->peer_count;
    *is_ending = mover->is_ending;
    if (mover->is_tracing && !mover->is_traced)
        slm_trace_leave();
    mover->is_tracing = mover->is_traced;
    if (mover->traces != mover->is_tracing) {
        mover->traces = mover->is_tracing;
        pthread_cond_broadcast(&mover->changed);
    }
    mover->is_sleeping = true;
    mover->published = mover->counted;
    pthread_mutex_unlock(&mover->lock);
    while (!list_empty(&begun)) {
        transfer *one = OWNER(begun.next, transfer, place);
        list_remove(&one->place);
        began(mover, one);
    }
    for (;;) { /* one at a time: finishing one takes it out of this list, under the lock */
        transfer *one = NULL;
        uint32_t generation = 0;
        bool is_left = false;
        pthread_mutex_lock(&mover->lock);
        if (!list_empty(&mover->cancelling)) {
            entry *next = mover->cancelling.next;
            one = OWNER(next, transfer, cancelling);
            /* One that is not begun yet waits for the next turn. */
            if (!list_empty(&mover->submitted))
                one = NULL;
            else
                list_remove(next);
        }
        if (one != NULL) {
            generation = one->generation;
            is_left = one->left != NULL;
        }
        pthread_mutex_unlock(&mover->lock);
        if (one == NULL)
            return peers;
        cancelled(mover, one);
        if (!is_left)
            continue;
        pthread_mutex_lock(&mover->lock);
        if (one->generation == generation)
            one->is_quiet = true;
        pthread_cond_broadcast(&mover->changed);
        pthread_mutex_unlock(&mover->lock);
    }
}

/* --- ending ----------------------------------------------------------------------------------- */

/* Everything has left, and every peer was told and has closed its side: nothing that was sent is lost when
   the sockets are closed. */
static bool has_drained(sluice_mover *mover, uint32_t peers)
{
    bool is_done = true;
    for (uint32_t i = 0; i < peers; i++) {
        peer *one = mover->peers[i];
        if (one->socket < 0)
            continue;
        if (!one->wants_bye && slm_has_left(one))
            one->wants_bye = true;
        if (one->bye_sent && one->frames_count == 0 && !one->is_shut) {
            shutdown(one->socket, SHUT_WR);
            one->is_shut = true;
        }
        is_done = false;
    }
    return is_done;
}

static void ended(sluice_mover *mover)
{
    bool drained = true;
    uint32_t peers;
    pthread_mutex_lock(&mover->lock);
    mover->is_ending = true; /* also where epoll failed: nothing more is taken */
    peers = mover->peer_count;
    pthread_mutex_unlock(&mover->lock);
    for (uint32_t i = 0; i < peers; i++) {
        peer *one = mover->peers[i];
        if (one->socket >= 0 && !one->is_shut)
            drained = false;
        slm_end_peer(mover, one, SLUICE_MOVER_E_CLOSED, 0);
        slm_drop_incoming(mover, one, SLUICE_MOVER_E_CLOSED, true);
    }
    pthread_mutex_lock(&mover->lock);
    for (uint32_t i = 0; i < mover->options.max_tickets; i++) { /* submitted and never begun */
        if (mover->transfers[i].state != LIVE)
            continue;
        mover->transfers[i].state = DONE;
        mover->transfers[i].code = SLUICE_MOVER_E_CLOSED;
    }
    mover->has_drained = drained;
    mover->traces = false; /* its list of events is nobody's now */
    pthread_cond_broadcast(&mover->changed);
    pthread_mutex_unlock(&mover->lock);
}

/* --- turns ------------------------------------------------------------------------------------ */

static void answered(const sluice_mover *mover)
{
    uint64_t rings;
    while (read(mover->doorbell, &rings, sizeof rings) < 0 && errno == EINTR) {
    }
}

/* What to ask the system for; whether some peer can be written to without asking. */
static bool asked(sluice_mover *mover, uint32_t peers)
{
    bool is_ready = false;
    for (uint32_t i = 0; i < peers; i++) {
        peer *one = mover->peers[i];
        const bool has_output = one->socket >= 0 && slm_has_output(mover, one);
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        if (one->socket < 0)
            continue;
        if (has_output && one->is_writable)
            is_ready = true;
        else if (has_output)
            event.events |= EPOLLOUT;
        if (event.events == one->watched) /* hardly ever anything changes */
            continue;
        if (epoll_ctl(mover->watch, one->watched == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, one->socket,
                      &event) == 0)
            one->watched = event.events;
        else
            slm_end_peer(mover, one, SLUICE_MOVER_E_SYSTEM, errno);
    }
    return is_ready;
}

/* Sleep until something is ready; what, stands in the peers. False where the system refuses. */
static bool slept(sluice_mover *mover, uint32_t peers, int timeout_ms)
{
    struct epoll_event events[EVENTS];
    const int count = epoll_wait(mover->watch, events, EVENTS, timeout_ms);
    mover->counted.polls++;
    if (count < 0)
        return errno == EINTR;
    for (int i = 0; i < count; i++) {
        const uint32_t place = events[i].data.u32;
        if (place == SLM_DOORBELL)
            answered(mover);
        else if (place < peers) /* else it came since, and is taken in the next turn */
            mover->peers[place]->ready = events[i].events;
    }
    return true;
}

static void served(sluice_mover *mover, peer *one)
{
    const uint32_t events = one->ready;
    one->ready = 0;
    if (one->socket >= 0 && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
        slm_read(mover, one);
    if ((events & EPOLLOUT) != 0)
        one->is_writable = true;
    if (one->socket >= 0 && one->is_writable && slm_has_output(mover, one))
        slm_write(mover, one);
}

static int milliseconds_to(int64_t deadline_ns)
{
    const int64_t left = deadline_ns - slm_now_ns();
    if (left <= 0)
        return 0;
    return left / 1000000 >= INT32_MAX ? INT32_MAX : (int)(left / 1000000) + 1;
}

void *slm_agent(void *argument)
{
    sluice_mover *mover = argument;
    for (;;) {
        bool is_ending;
        const uint32_t peers = taken(mover, &is_ending);
        int timeout = -1;
        if (is_ending) {
            /* Set under the lock before is_ending was, and constant since. */
            if (mover->ending == SLUICE_MOVER_ABORT || has_drained(mover, peers))
                break;
            timeout = milliseconds_to(mover->deadline_ns);
            if (timeout == 0)
                break;
        }
        if (asked(mover, peers))
            timeout = 0;
        if (!slept(mover, peers, timeout))
            break;
        for (uint32_t i = 0; i < peers; i++)
            served(mover, mover->peers[i]);
    }
    ended(mover);
    return NULL;
}
