/* SPDX-License-Identifier: Apache-2.0 */
/* Sending: messages are cut, their fragments take turns, and up to 16 frames leave by one call of the system. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

static uint64_t cost_of(uint64_t bytes)
{
    return bytes + FRAGMENT_COST;
}

static entry *bucket_of(peer *to, uint64_t number)
{
    return &to->numbered[number % BUCKETS];
}

/* --- cutting ---------------------------------------------------------------------------------- */

static void leave_table(sluice_mover *mover, transfer *send)
{
    if (send->has_cut)
        sluice_live_leave(mover->options.table, &send->reading);
    send->has_cut = false;
}

static void begin_cut(sluice_mover *mover, transfer *send)
{
    const sluice_table *table;
    if (mover->options.table == NULL || send->how.fragment_bytes > 0 || send->bytes == 0)
        return;
    table = sluice_live_enter(mover->options.table, &send->reading);
    if (table == NULL)
        return;
    send->has_cut = true;
    if (sluice_cut_begin(&send->cut, table, send->bytes) != SLUICE_OK)
        leave_table(mover, send); /* outside its range: the constant size */
}

/* How many bytes the next fragment has. A size of the table that is above the limit becomes several; what a
   damaged mapped table might say is cut down to what is left. */
static uint32_t next_fragment(sluice_mover *mover, transfer *send)
{
    const uint64_t left = send->bytes - send->cut_bytes;
    uint64_t size = send->how.fragment_bytes;
    if (send->next_bytes > 0)
        return send->next_bytes;
    if (left == 0)
        return 0;
    if (size == 0 && (!send->has_cut || sluice_cut_next(&send->cut, &size) != 1 || size == 0))
        size = mover->options.fragment_bytes;
    size = size < left ? size : left;
    if (size > mover->options.max_fragment_bytes)
        size = mover->options.max_fragment_bytes;
    send->next_bytes = (uint32_t)size;
    return send->next_bytes;
}

/* --- ends of sends ---------------------------------------------------------------------------- */

/* The rest of it will not be sent: once what is prepared has left, the peer is told, if it knows of it. */
static void give_up(sluice_mover *mover, peer *to, transfer *send, int code)
{
    list_remove(&send->place);
    leave_table(mover, send);
    atomic_store_explicit(&send->is_held, false, memory_order_relaxed);
    send->failed = code;
    if (!send->is_begun)
        slm_finish(mover, send, code);
    else if (send->queued == 0)
        list_append(&to->aborting, &send->place);
}

void slm_begin_send(sluice_mover *mover, peer *to, transfer *send)
{
    if (to->socket < 0)
        slm_finish(mover, send, atomic_load(&to->code));
    else if (to->cannot_write || to->wants_bye)
        slm_finish(mover, send, SLUICE_MOVER_E_PEER);
    else
        list_append(&to->fresh, &send->place);
}

void slm_cancel_send(sluice_mover *mover, peer *to, transfer *send)
{
    if (!send->is_cut_done && send->failed == 0)
        give_up(mover, to, send, SLUICE_MOVER_E_CANCELLED);
}

static void finish_all(sluice_mover *mover, entry *list, int code)
{
    while (!list_empty(list)) {
        transfer *send = OWNER(list->next, transfer, place);
        list_remove(&send->place);
        list_remove(&send->by_number);
        slm_finish(mover, send, code);
    }
}

void slm_drop_sends(sluice_mover *mover, peer *to, int code)
{
    /* Frames first: a send of which all is cut is in no list. */
    for (uint32_t i = 0; i < to->frames_count; i++) {
        transfer *send = to->frames[(to->frames_begin + i) % FRAMES].send;
        if (send == NULL || --send->queued > 0 || !(send->is_cut_done || send->failed != 0))
            continue;
        list_remove(&send->by_number);
        slm_finish(mover, send, send->failed != 0 ? send->failed : code);
    }
    to->frames_count = 0;
    to->frames_bytes = 0;
    to->is_packing = false;
    to->cannot_write = true;
    finish_all(mover, &to->fresh, code);
    finish_all(mover, &to->active, code);
    finish_all(mover, &to->held, code);
    finish_all(mover, &to->aborting, code);
    while (!list_empty(&to->granting))
        list_remove(to->granting.next);
}

bool slm_has_left(const peer *to)
{
    return to->cannot_write ||
           (list_empty(&to->fresh) && list_empty(&to->active) && list_empty(&to->held) &&
            list_empty(&to->aborting) && to->frames_count == 0);
}

/* --- credit ----------------------------------------------------------------------------------- */

/* Messages that waited go on; where there is too little for them, they wait again. */
static void release_held(peer *to)
{
    while (!list_empty(&to->held)) {
        transfer *send = OWNER(to->held.next, transfer, place);
        list_remove(&send->place);
        atomic_store_explicit(&send->is_held, false, memory_order_relaxed);
        list_append(&to->active, &send->place);
    }
}

int slm_take_credit(peer *from, uint64_t bytes, uint64_t records)
{
    const uint64_t most = UINT64_C(1) << 62;
    if (bytes > most || relaxed(&from->credit) > most || from->records + records > UINT32_MAX)
        return SLUICE_MOVER_E_PROTOCOL;
    add_to(&from->credit, bytes);
    from->records += records;
    from->need_sent = false;
    release_held(from);
    return SLUICE_MOVER_OK;
}

int slm_take_grant(peer *from, uint64_t number)
{
    entry *bucket = bucket_of(from, number);
    if (number >= from->next_number)
        return SLUICE_MOVER_E_PROTOCOL;
    for (entry *at = bucket->next; at != bucket; at = at->next) {
        transfer *send = OWNER(at, transfer, by_number);
        if (send->number != number)
            continue;
        send->is_granted = true;
        if (atomic_load_explicit(&send->is_held, memory_order_relaxed)) {
            list_remove(&send->place);
            atomic_store_explicit(&send->is_held, false, memory_order_relaxed);
            list_append(&from->active, &send->place);
        }
        break;
    }
    return SLUICE_MOVER_OK; /* one that is unknown has left in full meanwhile */
}

/* --- frames ----------------------------------------------------------------------------------- */

static frame *new_frame(peer *to, const frame_header *header, transfer *send)
{
    frame *made = &to->frames[(to->frames_begin + to->frames_count++) % FRAMES];
    made->header_bytes = encode(made->header, header);
    made->bytes = header->bytes;
    made->written = 0;
    made->content = NULL;
    made->send = send;
    made->busy_ns = 0;
    to->frames_bytes += made->header_bytes + made->bytes;
    return made;
}

static bool wants_to_grant(const sluice_mover *mover, const peer *to)
{
    if (to->owed == 0 && to->owed_records == 0)
        return false;
    /* Little by little would cost a frame for each fragment; who needs it gets what there is. */
    return to->is_needed || to->owed >= mover->window / 8 + 1 || to->owed_records >= RECORDS / 8;
}

static bool wants_credit(const peer *to)
{
    return !to->need_sent &&
           (!list_empty(&to->held) || (!list_empty(&to->fresh) && to->records == 0));
}

/* A frame of control, if there is one to send. They take no memory: what is to be said is kept as numbers. */
static bool prepared_control(sluice_mover *mover, peer *to)
{
    frame_header header = {0};
    if (wants_to_grant(mover, to)) {
        header.kind = FRAME_CREDIT;
        header.number = to->owed;
        header.tag = (uint32_t)to->owed_records;
        to->room += to->owed;
        to->room_records += to->owed_records;
        to->owed = to->owed_records = 0;
        to->is_needed = false;
    } else if (!list_empty(&to->granting)) {
        incoming *message = OWNER(to->granting.next, incoming, granting);
        list_remove(&message->granting);
        message->is_granted = true;
        header.kind = FRAME_GRANT;
        header.number = message->number;
    } else if (!list_empty(&to->aborting)) {
        transfer *send = OWNER(to->aborting.next, transfer, place);
        list_remove(&send->place);
        list_remove(&send->by_number);
        header.kind = FRAME_ABORT;
        header.number = send->number;
        slm_finish(mover, send, send->failed);
    } else if (wants_credit(to)) {
        to->need_sent = true;
        header.kind = FRAME_NEED;
    } else if (to->wants_bye && !to->bye_sent && slm_has_left(to)) {
        to->bye_sent = true;
        header.kind = FRAME_BYE;
    } else {
        return false;
    }
    new_frame(to, &header, NULL);
    return true;
}

/* The next `size` bytes of the message as they travel; null where the program does not give them. */
static const unsigned char *content_of(sluice_mover *mover, peer *to, transfer *send, uint32_t size,
                                       int *code)
{
    *code = SLUICE_MOVER_OK;
    if (send->how.pack == NULL)
        return send->buffer + send->cut_bytes;
    if (to->packing == NULL)
        to->packing = malloc((size_t)mover->options.max_fragment_bytes);
    if (to->packing == NULL)
        *code = SLUICE_MOVER_E_MEMORY;
    else if (send->how.pack(send->how.context, to->packing, send->cut_bytes, size) != 0)
        *code = SLUICE_MOVER_E_CALLBACK;
    return *code == SLUICE_MOVER_OK ? to->packing : NULL;
}

/* A frame with the next `size` bytes, 0 for a message of which there is no credit for any, or which has none.
   `is_paid`: with credit. Gives the message up where packing fails. */
static void prepare(sluice_mover *mover, peer *to, transfer *send, uint32_t size, bool is_paid)
{
    frame_header header = {.kind = send->is_begun ? FRAME_DATA : FRAME_FIRST, .bytes = size,
                           .tag = send->tag, .message_bytes = send->bytes};
    const unsigned char *content = NULL;
    const int64_t begin = slm_now_ns();
    frame *made;
    if (size > 0) {
        int code;
        content = content_of(mover, to, send, size, &code);
        if (code != SLUICE_MOVER_OK) {
            give_up(mover, to, send, code);
            return;
        }
    }
    if (!send->is_begun) {
        send->is_begun = true;
        send->number = to->next_number++;
        to->records--;
        list_append(bucket_of(to, send->number), &send->by_number);
        set_time(&send->begin_ns, begin);
    }
    if (is_paid) {
        header.flags = FLAG_EARLY;
        atomic_store_explicit(&to->credit, relaxed(&to->credit) - cost_of(size),
                              memory_order_relaxed);
    }
    header.number = send->number;
    made = new_frame(to, &header, send);
    made->content = content;
    if (size > 0 && send->how.pack != NULL) {
        to->is_packing = true;
        made->busy_ns = slm_now_ns() - begin;
    }
    send->queued++;
    send->cut_bytes += size;
    if (size > 0)
        send->next_bytes = 0; /* else the fragment is cut and waits */
    list_remove(&send->place);
    if (send->cut_bytes < send->bytes) {
        list_append(&to->active, &send->place);
        return;
    }
    send->is_cut_done = true;
    list_remove(&send->by_number);
    leave_table(mover, send);
}

static bool can_begin(const peer *to)
{
    return !list_empty(&to->fresh) && to->records > 0;
}

/* Begin a message: with its first fragment where there is credit for it, else without any, so that a receive which
   waits at the other end can ask for the rest. */
static void begin_message(sluice_mover *mover, peer *to)
{
    transfer *send = OWNER(to->fresh.next, transfer, place);
    uint32_t size;
    begin_cut(mover, send);
    size = next_fragment(mover, send);
    if (size > 0 && relaxed(&to->credit) >= cost_of(size))
        prepare(mover, to, send, size, true);
    else
        prepare(mover, to, send, 0, false);
}

/* The next message that may go on sends a fragment; false where none may. */
static bool went_on(sluice_mover *mover, peer *to)
{
    while (!list_empty(&to->active)) {
        transfer *send = OWNER(to->active.next, transfer, place);
        const uint32_t size = next_fragment(mover, send);
        if (send->is_granted || relaxed(&to->credit) >= cost_of(size)) {
            prepare(mover, to, send, size, !send->is_granted);
            return true;
        }
        list_remove(&send->place);
        list_append(&to->held, &send->place);
        atomic_store_explicit(&send->is_held, true, memory_order_relaxed);
        mover->counted.held++;
    }
    return false;
}

static bool prepared_data(sluice_mover *mover, peer *to)
{
    if (to->is_packing) /* there is one buffer to pack into */
        return false;
    if (can_begin(to) && (to->is_fresh_next || list_empty(&to->active))) {
        begin_message(mover, to);
        to->is_fresh_next = false;
        return true;
    }
    to->is_fresh_next = true;
    return went_on(mover, to) || can_begin(to);
}

static void prepare_frames(sluice_mover *mover, peer *to)
{
    if (to->cannot_write)
        return;
    while (to->frames_count < FRAMES && to->frames_bytes < WRITE_BYTES)
        if (!prepared_control(mover, to) && !prepared_data(mover, to))
            return;
}

bool slm_has_output(sluice_mover *mover, peer *to)
{
    if (to->frames_count > 0)
        return true;
    prepare_frames(mover, to);
    return to->frames_count > 0;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* What is to be written of the frames, into `parts`; how many parts. */
static int gathered(peer *to, struct iovec *parts, uint64_t *bytes)
{
    int count = 0;
    *bytes = 0;
    for (uint32_t i = 0; i < to->frames_count && *bytes < TURN_BYTES; i++) {
        frame *one = &to->frames[(to->frames_begin + i) % FRAMES];
        uint32_t content = one->bytes, done = 0;
        if (one->written < one->header_bytes) {
            parts[count].iov_base = one->header + one->written;
            parts[count].iov_len = one->header_bytes - one->written;
            *bytes += parts[count++].iov_len;
        } else {
            done = one->written - one->header_bytes;
            content -= done;
        }
        if (content == 0)
            continue;
        if (content > TURN_BYTES)
            content = TURN_BYTES;
        /* sendmsg does not write to what it sends. */
        parts[count].iov_base = (void *)(uintptr_t)(one->content + done);
        parts[count].iov_len = content;
        *bytes += parts[count++].iov_len;
        if (content + done < one->bytes)
            break;
    }
    return count;
}

/* A frame has left in full. */
static void has_left(sluice_mover *mover, peer *to, frame *one)
{
    transfer *send = one->send;
    to->frames_begin = (to->frames_begin + 1) % FRAMES;
    to->frames_count--;
    to->frames_bytes -= one->header_bytes + one->bytes;
    if (send == NULL)
        return;
    if (one->content == to->packing)
        to->is_packing = false;
    add_time(&send->busy_ns, one->busy_ns);
    mover->counted.sender_ns += (uint64_t)one->busy_ns;
    if (one->bytes > 0 || send->bytes == 0) {
        add_to(&send->fragments, 1);
        mover->counted.fragments_sent++;
        if (mover->is_tracing)
            slm_trace_sender(one->bytes, one->busy_ns);
    }
    send->queued--;
    if (send->queued > 0)
        return;
    if (send->failed != 0) {
        list_append(&to->aborting, &send->place);
    } else if (send->is_cut_done) {
        mover->counted.messages_sent++;
        slm_finish(mover, send, SLUICE_MOVER_OK);
    }
}

/* The socket took so many bytes, in so long, which each frame had its share of. */
static void took(sluice_mover *mover, peer *to, uint64_t bytes, int64_t ns)
{
    const double each = (double)ns / (double)bytes;
    add_to(&to->moved, bytes);
    while (bytes > 0) {
        frame *one = &to->frames[to->frames_begin];
        const uint32_t left = one->header_bytes + one->bytes - one->written;
        const uint32_t now = bytes < left ? (uint32_t)bytes : left;
        const uint32_t before =
            one->written > one->header_bytes ? one->written - one->header_bytes : 0;
        uint32_t after;
        one->written += now;
        after = one->written > one->header_bytes ? one->written - one->header_bytes : 0;
        one->busy_ns += (int64_t)(each * now);
        bytes -= now;
        if (one->send != NULL) {
            add_to(&one->send->moved, after - before);
            mover->counted.bytes_sent += after - before;
        }
        if (now == left)
            has_left(mover, to, one);
    }
}

void slm_write(sluice_mover *mover, peer *to)
{
    struct iovec parts[2 * FRAMES];
    struct msghdr message = {.msg_iov = parts};
    uint64_t bytes;
    ssize_t written;
    int64_t begin;
    prepare_frames(mover, to);
    message.msg_iovlen = (size_t)gathered(to, parts, &bytes);
    if (bytes == 0)
        return;
    begin = slm_now_ns();
    written = sendmsg(to->socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    mover->counted.writes++;
    if (written > 0)
        took(mover, to, (uint64_t)written, slm_now_ns() - begin);
    if (written >= 0) {
        to->is_writable = (uint64_t)written == bytes;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) {
        to->is_writable = false;
    } else if (errno != EINTR) {
        /* What the peer sent before it went may still be read. */
        atomic_store(&to->error, errno);
        slm_drop_sends(mover, to, SLUICE_MOVER_E_PEER);
    }
}
