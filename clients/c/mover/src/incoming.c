/* SPDX-License-Identifier: Apache-2.0 */
/* Receiving: frames are read as they come, checked against what the peer may send, and their bytes go where they belong,
   without a copy where the receive was there first. Nothing that a peer sends is believed before it is checked, and
   no memory is taken for a length that was not paid for. */
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

/* --- messages --------------------------------------------------------------------------------- */

static void free_stored(sluice_mover *mover, peer *from, incoming *message)
{
    while (message->first != NULL) {
        stored *one = message->first;
        message->first = one->next;
        mover->counted.early_bytes -= one->bytes;
        from->owed += cost_of(one->bytes);
        free(one);
    }
    message->last = &message->first;
}

static void forget(sluice_mover *mover, peer *from, incoming *message)
{
    list_remove(&message->place);
    list_remove(&message->by_number);
    list_remove(&message->granting);
    free_stored(mover, from, message);
    free(message);
}

/* A message is here in full, and a receive has it. */
static void complete(sluice_mover *mover, peer *from, incoming *message)
{
    transfer *receive = message->receive;
    int code = receive->failed;
    forget(mover, from, message);
    receive->incoming = NULL;
    mover->counted.messages_received++;
    slm_finish(mover, receive, code);
}

/* A fragment of a message that a receive has, where it is not in its place already. */
static void deliver(transfer *receive, const unsigned char *content, uint64_t offset, uint32_t bytes)
{
    if (receive->failed != 0)
        return;
    if (receive->how.unpack == NULL)
        memcpy(receive->buffer + offset, content, bytes);
    else if (receive->how.unpack(receive->how.context, content, offset, bytes) != 0)
        receive->failed = SLUICE_MOVER_E_CALLBACK; /* the rest is read, and lost */
}

static void counted_fragment(sluice_mover *mover, transfer *receive, uint32_t bytes, int64_t busy_ns)
{
    add_to(&receive->moved, bytes);
    add_to(&receive->fragments, 1);
    add_time(&receive->busy_ns, busy_ns);
    mover->counted.receiver_ns += (uint64_t)busy_ns;
    if (mover->is_tracing)
        slm_trace_receiver(bytes, busy_ns);
}

/* From here on the message is the receive's. */
static void give(peer *from, incoming *message, transfer *receive)
{
    message->receive = receive;
    receive->incoming = message;
    list_remove(&receive->place);
    list_remove(&message->place);
    from->owed_records++;
    atomic_store_explicit(&receive->total, message->bytes, memory_order_relaxed);
    set_time(&receive->begin_ns, message->begin_ns);
    if (message->bytes > receive->bytes)
        receive->failed = SLUICE_MOVER_E_TRUNCATED;
}

/* Give a message that was here first to a receive: what is here of it, and what comes. */
static void attach(sluice_mover *mover, peer *from, incoming *message, transfer *receive)
{
    give(from, message, receive);
    for (const stored *one = message->first; one != NULL; one = one->next) {
        const int64_t begin = slm_now_ns();
        deliver(receive, one->content, one->offset, one->bytes);
        counted_fragment(mover, receive, one->bytes, slm_now_ns() - begin);
    }
    free_stored(mover, from, message);
    if (message->received == message->bytes)
        complete(mover, from, message);
    else if (from->socket >= 0)
        list_append(&from->granting, &message->granting);
}

void slm_begin_receive(sluice_mover *mover, peer *from, transfer *receive)
{
    entry *bucket = &from->early[receive->tag % BUCKETS];
    for (entry *at = bucket->next; at != bucket; at = at->next) {
        incoming *message = OWNER(at, incoming, place);
        if (message->tag == receive->tag) {
            attach(mover, from, message, receive);
            return;
        }
    }
    if (from->socket < 0)
        slm_finish(mover, receive, atomic_load(&from->code));
    else
        list_append(&from->posted[receive->tag % BUCKETS], &receive->place);
}

void slm_cancel_receive(sluice_mover *mover, peer *from, transfer *receive)
{
    (void)from;
    if (receive->incoming != NULL) {
        if (receive->left != NULL) /* the rest is read, and lost */
            receive->failed = SLUICE_MOVER_E_CANCELLED;
        return;
    }
    list_remove(&receive->place);
    slm_finish(mover, receive, SLUICE_MOVER_E_CANCELLED);
}

void slm_drop_incoming(sluice_mover *mover, peer *from, int code, bool all)
{
    if (from->storing != NULL)
        free(from->storing);
    from->storing = NULL;
    from->message = NULL;
    for (int i = 0; i < BUCKETS; i++) {
        while (!list_empty(&from->posted[i])) {
            transfer *receive = OWNER(from->posted[i].next, transfer, place);
            list_remove(&receive->place);
            slm_finish(mover, receive, code);
        }
        while (!list_empty(&from->coming[i])) {
            incoming *message = OWNER(from->coming[i].next, incoming, by_number);
            transfer *receive = message->receive;
            forget(mover, from, message);
            if (receive == NULL)
                continue;
            receive->incoming = NULL;
            slm_finish(mover, receive, code);
        }
        while (all && !list_empty(&from->early[i]))
            forget(mover, from, OWNER(from->early[i].next, incoming, place));
    }
}

/* --- fragments -------------------------------------------------------------------------------- */

/* All of a fragment is here. */
static void end_fragment(sluice_mover *mover, peer *from)
{
    incoming *message = from->message;
    transfer *receive = message->receive;
    const uint32_t bytes = from->fragment_bytes;
    stored *storing = from->storing;
    const int64_t begin = slm_now_ns();
    int64_t busy_ns = 0;
    from->message = NULL;
    from->storing = NULL;
    if (from->read_now > 0)
        busy_ns = (int64_t)((double)mover->read_ns * from->read_now / (double)mover->read_bytes);
    if (receive == NULL) {
        if (storing != NULL) {
            *message->last = storing;
            message->last = &storing->next;
            mover->counted.early_bytes += bytes;
            if (mover->counted.early_bytes > mover->counted.max_early_bytes)
                mover->counted.max_early_bytes = mover->counted.early_bytes;
        }
    } else {
        /* A receive may have come while the fragment was being stored. */
        if (from->into == INTO_STAGING)
            deliver(receive, from->staging, message->received, bytes);
        else if (storing != NULL)
            deliver(receive, storing->content, message->received, bytes);
        free(storing);
        if (from->is_early)
            from->owed += cost_of(bytes);
        if (bytes > 0 || message->bytes == 0)
            counted_fragment(mover, receive, bytes, busy_ns + slm_now_ns() - begin);
    }
    mover->counted.bytes_received += bytes;
    mover->counted.fragments_received += bytes > 0 || message->bytes == 0;
    message->received += bytes;
    if (message->received < message->bytes)
        return;
    list_remove(&message->by_number);
    if (receive != NULL)
        complete(mover, from, message);
}

/* Choose where the bytes of the fragment go that comes next. */
static int begin_fragment(sluice_mover *mover, peer *from, incoming *message,
                          const frame_header *header)
{
    const transfer *receive = message->receive;
    from->message = message;
    from->fragment_bytes = header->bytes;
    from->fragment_read = 0;
    from->read_now = 0;
    from->is_early = (header->flags & FLAG_EARLY) != 0;
    from->into = INTO_NOTHING;
    if (header->bytes == 0)
        return SLUICE_MOVER_OK;
    if (receive == NULL) {
        from->storing = malloc(sizeof *from->storing + header->bytes);
        if (from->storing == NULL)
            return SLUICE_MOVER_E_MEMORY;
        from->storing->next = NULL;
        from->storing->offset = message->received;
        from->storing->bytes = header->bytes;
        from->into = INTO_STORED;
        from->at = from->storing->content;
    } else if (receive->failed != 0) {
        from->into = INTO_NOTHING;
    } else if (receive->how.unpack == NULL) {
        from->into = INTO_BUFFER;
        from->at = receive->buffer + message->received;
    } else {
        if (from->staging == NULL)
            from->staging = malloc((size_t)mover->options.max_fragment_bytes);
        if (from->staging == NULL)
            return SLUICE_MOVER_E_MEMORY;
        from->into = INTO_STAGING;
        from->at = from->staging;
    }
    return SLUICE_MOVER_OK;
}

/* --- frames ----------------------------------------------------------------------------------- */

static incoming *message_of(peer *from, uint64_t number)
{
    entry *bucket = &from->coming[number % BUCKETS];
    for (entry *at = bucket->next; at != bucket; at = at->next) {
        incoming *message = OWNER(at, incoming, by_number);
        if (message->number == number)
            return message;
    }
    return NULL;
}

/* Take what the fragment costs from what was granted. */
static bool is_paid(peer *from, const frame_header *header)
{
    if ((header->flags & FLAG_EARLY) == 0)
        return true;
    if (from->room < cost_of(header->bytes))
        return false;
    from->room -= cost_of(header->bytes);
    return true;
}

static int first_frame(sluice_mover *mover, peer *from, const frame_header *header)
{
    entry *bucket = &from->posted[header->tag % BUCKETS];
    incoming *message;
    int code;
    if (header->number != from->next_coming || from->room_records == 0 ||
        ((header->flags & FLAG_EARLY) != 0) != (header->bytes > 0) || !is_paid(from, header))
        return SLUICE_MOVER_E_PROTOCOL;
    message = calloc(1, sizeof *message);
    if (message == NULL)
        return SLUICE_MOVER_E_MEMORY;
    from->next_coming++;
    from->room_records--;
    message->number = header->number;
    message->bytes = header->message_bytes;
    message->tag = header->tag;
    message->begin_ns = slm_now_ns();
    message->last = &message->first;
    list_init(&message->granting);
    list_init(&message->place);
    list_append(&from->coming[message->number % BUCKETS], &message->by_number);
    list_append(&from->early[message->tag % BUCKETS], &message->place);
    for (entry *at = bucket->next; at != bucket; at = at->next) {
        transfer *receive = OWNER(at, transfer, place);
        if (receive->tag != header->tag)
            continue;
        give(from, message, receive);
        if (header->bytes < message->bytes)
            list_append(&from->granting, &message->granting);
        break;
    }
    code = begin_fragment(mover, from, message, header);
    if (code == SLUICE_MOVER_OK && header->bytes == 0)
        end_fragment(mover, from);
    return code;
}

static int data_frame(sluice_mover *mover, peer *from, const frame_header *header)
{
    incoming *message = message_of(from, header->number);
    if (message == NULL || header->tag != message->tag ||
        header->bytes > message->bytes - message->received || !is_paid(from, header) ||
        ((header->flags & FLAG_EARLY) == 0 && !message->is_granted))
        return SLUICE_MOVER_E_PROTOCOL;
    return begin_fragment(mover, from, message, header);
}

static int abort_frame(sluice_mover *mover, peer *from, const frame_header *header)
{
    incoming *message = message_of(from, header->number);
    transfer *receive;
    if (message == NULL)
        return SLUICE_MOVER_E_PROTOCOL;
    receive = message->receive;
    forget(mover, from, message);
    if (receive == NULL) {
        from->owed_records++;
    } else {
        receive->incoming = NULL;
        slm_finish(mover, receive, SLUICE_MOVER_E_CANCELLED);
    }
    return SLUICE_MOVER_OK;
}

static int handled(sluice_mover *mover, peer *from, const frame_header *header)
{
    if (header->bytes > mover->options.max_fragment_bytes)
        return SLUICE_MOVER_E_PROTOCOL;
    switch (header->kind) {
    case FRAME_FIRST: return first_frame(mover, from, header);
    case FRAME_DATA: return data_frame(mover, from, header);
    case FRAME_CREDIT: return slm_take_credit(from, header->number, header->tag);
    case FRAME_GRANT: return slm_take_grant(from, header->number);
    case FRAME_NEED: from->is_needed = true; return SLUICE_MOVER_OK;
    case FRAME_ABORT: return abort_frame(mover, from, header);
    default: return SLUICE_MOVER_E_PEER; /* it says good-bye, and means it */
    }
}

/* --- reading ---------------------------------------------------------------------------------- */

/* So many bytes of the fragment are in their place. */
static void advance(sluice_mover *mover, peer *from, uint32_t bytes)
{
    from->fragment_read += bytes;
    from->read_now += bytes;
    if (from->into != INTO_NOTHING)
        from->at += bytes;
    if (from->fragment_read == from->fragment_bytes)
        end_fragment(mover, from);
}

/* Everything in the input that can be understood. */
static int understood(sluice_mover *mover, peer *from)
{
    int code = SLUICE_MOVER_OK;
    while (code == SLUICE_MOVER_OK && from->input_begin < from->input_end) {
        const unsigned char *at = from->input + from->input_begin;
        const uint32_t room = from->input_end - from->input_begin;
        if (from->message != NULL) {
            const uint32_t left = from->fragment_bytes - from->fragment_read;
            const uint32_t now = room < left ? room : left;
            if (from->into != INTO_NOTHING)
                memcpy(from->at, at, now);
            from->input_begin += now;
            advance(mover, from, now);
        } else {
            frame_header header;
            const int length = decode(at, room, &header);
            if (length < 0)
                return SLUICE_MOVER_E_PROTOCOL;
            if (length == 0)
                break;
            from->input_begin += (uint32_t)length;
            code = handled(mover, from, &header);
        }
    }
    return code;
}

/* Where the next bytes go: the rest of a fragment into its place, and behind it what fits into the input: a header
   where the fragment is long, so that the next one is not copied either, else several small frames. */
static int places(sluice_mover *mover, peer *from, struct iovec *parts, uint32_t *direct)
{
    uint32_t left = from->message != NULL ? from->fragment_bytes - from->fragment_read : 0;
    int count = 0;
    bool is_whole = true;
    *direct = 0;
    if (left > 0) {
        const uint32_t most = from->into == INTO_NOTHING ? SCRATCH_BYTES : TURN_BYTES;
        if (left > most) {
            left = most;
            is_whole = false;
        }
        parts[count].iov_base = from->into == INTO_NOTHING ? mover->scratch : from->at;
        parts[count++].iov_len = left;
        *direct = left;
    }
    if (is_whole) {
        parts[count].iov_base = from->input + from->input_end;
        parts[count++].iov_len = left >= INPUT_BYTES ? FIRST_BYTES : INPUT_BYTES - from->input_end;
    }
    return count;
}

void slm_read(sluice_mover *mover, peer *from)
{
    struct iovec parts[2];
    struct msghdr message = {.msg_iov = parts};
    const int64_t begin = slm_now_ns();
    uint32_t direct;
    ssize_t bytes;
    int code;
    /* What is left here is less than a header. */
    memmove(from->input, from->input + from->input_begin, from->input_end - from->input_begin);
    from->input_end -= from->input_begin;
    from->input_begin = 0;
    message.msg_iovlen = (size_t)places(mover, from, parts, &direct);
    bytes = recvmsg(from->socket, &message, MSG_DONTWAIT);
    mover->counted.reads++;
    if (bytes < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
            slm_end_peer(mover, from, SLUICE_MOVER_E_PEER, errno);
        return;
    }
    if (bytes == 0) {
        slm_end_peer(mover, from, SLUICE_MOVER_E_PEER, 0);
        return;
    }
    mover->read_ns = slm_now_ns() - begin;
    mover->read_bytes = (uint64_t)bytes;
    from->read_now = 0;
    if (direct > (size_t)bytes)
        direct = (uint32_t)bytes;
    from->input_end += (uint32_t)bytes - direct;
    if (direct > 0)
        advance(mover, from, direct);
    code = understood(mover, from);
    if (code != SLUICE_MOVER_OK)
        slm_end_peer(mover, from, code, 0);
}
