/* SPDX-License-Identifier: Apache-2.0 */
/* Each function of the mover and each of its errors does what sluice_mover.h says.

       unit SCRATCH [TABLE]

   SCRATCH is an empty folder, TABLE a table file that cuts 333 bytes into 146 and 187. */
#include "both_ends.h"

#include "../src/frame.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/resource.h>

enum { WAIT_MS = 60000 };

/* ThreadSanitizer ends the child of a fork that starts a thread. */
#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
enum { STARTS_THREADS_IN_CHILD = 0 };
#else
enum { STARTS_THREADS_IN_CHILD = 1 };
#endif

static sluice_mover_options options(void)
{
    sluice_mover_options chosen = {.size = sizeof chosen};
    return chosen;
}

/* --- messages --------------------------------------------------------------------------------- */

static void every_size_arrives(int buffer_bytes, uint64_t fragment_bytes)
{
    static unsigned char from[300000], to[300000];
    const uint64_t sizes[] = {0, 1, 2, 23, 24, 25, 4095, 4096, 4097, 16383, 16384, 16385,
                              65536, 299999, 300000};
    sluice_mover_options chosen = options();
    sluice_mover *movers[2];
    chosen.fragment_bytes = fragment_bytes;
    both(movers, &chosen, buffer_bytes);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int is_early = 0; is_early < 2; is_early++) {
            sluice_mover_report report = {.size = sizeof report};
            sluice_mover_ticket out = 0, in = 0;
            const uint64_t fragments = (sizes[i] + fragment_bytes - 1) / fragment_bytes;
            fill(from, sizes[i], i);
            memset(to, 0, sizeof to);
            if (!is_early)
                in = asked(movers[1], 7, to, sizeof to);
            out = sent(movers[0], 7, from, sizes[i]);
            OK(sluice_mover_wait(movers[0], out, WAIT_MS, &report));
            CHECK(report.is_send && report.peer == 0 && report.tag == 7);
            CHECK(report.moved_bytes == sizes[i] && report.message_bytes == sizes[i]);
            CHECK(report.fragments == (fragments ? fragments : 1));
            CHECK(report.begin_ns > 0 && report.end_ns >= report.begin_ns && report.busy_ns >= 0);
            if (is_early)
                in = asked(movers[1], 7, to, sizeof to);
            OK(sluice_mover_wait(movers[1], in, WAIT_MS, &report));
            CHECK(!report.is_send && report.moved_bytes == sizes[i]);
            CHECK(report.message_bytes == sizes[i] && report.end_ns >= report.begin_ns);
            CHECK(is_filled(to, sizes[i], i));
        }
    }
    close_both(movers);
}

/* Many messages of several tags at once, receives in another order than sends: each gets its own. */
static void tags_keep_their_order(void)
{
    enum { TAGS = 5, EACH = 40, BYTES = 9000 };
    static unsigned char from[TAGS][EACH][BYTES], to[TAGS][EACH][BYTES];
    sluice_mover_ticket out[TAGS][EACH], in[TAGS][EACH];
    sluice_mover *movers[2];
    uint64_t state = 5;
    both(movers, NULL, 4608);
    for (uint32_t j = 0; j < EACH; j++)
        for (uint32_t tag = 0; tag < TAGS; tag++) {
            const uint64_t bytes = drawn(&state, BYTES);
            fill(from[tag][j], bytes, tag * EACH + j);
            if (tag % 2 == 0)
                in[tag][j] = asked(movers[1], tag * 64, to[tag][j], BYTES); /* one bucket */
            out[tag][j] = sent(movers[0], tag * 64, from[tag][j], bytes);
        }
    for (uint32_t tag = 1; tag < TAGS; tag += 2)
        for (uint32_t j = 0; j < EACH; j++)
            in[tag][j] = asked(movers[1], tag * 64, to[tag][j], BYTES);
    for (uint32_t tag = TAGS; tag-- > 0;)
        for (uint32_t j = EACH; j-- > 0;) {
            sluice_mover_report report = {.size = sizeof report};
            OK(sluice_mover_wait(movers[1], in[tag][j], WAIT_MS, &report));
            CHECK(is_filled(to[tag][j], report.moved_bytes, tag * EACH + j));
            OK(sluice_mover_wait(movers[0], out[tag][j], WAIT_MS, NULL));
        }
    close_both(movers);
}

/* Two tags, two messages each: sends and receives in every order that keeps those of one tag in theirs. */
static void every_order_is_right(void)
{
    enum { MESSAGES = 4, STEPS = 2 * MESSAGES };
    static unsigned char from[MESSAGES][6000], to[MESSAGES][6000];
    sluice_mover *movers[2];
    both(movers, NULL, 4608);
    for (uint32_t name = 0; name < MESSAGES; name++)
        fill(from[name], sizeof from[name], name);
    /* An order is which four of eight steps are sends, and in which the tags take turns. */
    for (uint32_t sends = 0; sends < 1u << STEPS; sends++) {
        if (__builtin_popcount(sends) != MESSAGES)
            continue;
        for (uint32_t turns = 0; turns < 1u << MESSAGES; turns++) {
            sluice_mover_ticket out[MESSAGES], in[MESSAGES];
            uint32_t sending[2] = {0}, receiving[2] = {0}, turn = turns;
            if (__builtin_popcount(turns) != MESSAGES / 2)
                continue;
            memset(to, 0xff, sizeof to);
            for (uint32_t step = 0, nth[2] = {0}; step < STEPS; step++) {
                const bool is_send = sends >> step & 1;
                const uint32_t tag = (turn >> nth[is_send]++) & 1; /* the same turns at both ends */
                const uint32_t name = tag * 2 + (is_send ? sending[tag]++ : receiving[tag]++);
                if (is_send)
                    out[name] = sent(movers[0], tag, from[name], sizeof from[name]);
                else
                    in[name] = asked(movers[1], tag, to[name], sizeof to[name]);
            }
            for (uint32_t name = 0; name < MESSAGES; name++) {
                OK(sluice_mover_wait(movers[0], out[name], WAIT_MS, NULL));
                OK(sluice_mover_wait(movers[1], in[name], WAIT_MS, NULL));
                CHECK(memcmp(to[name], from[name], sizeof to[name]) == 0);
            }
        }
    }
    close_both(movers);
}

static void a_short_message_passes_a_long_one(void)
{
    static unsigned char from[8 << 20], to[8 << 20];
    unsigned char note[16] = "short", got[16];
    sluice_mover *movers[2];
    sluice_mover_ticket large, small, in_large, in_small;
    both(movers, NULL, 4608);
    in_large = asked(movers[1], 1, to, sizeof to);
    in_small = asked(movers[1], 2, got, sizeof got);
    large = sent(movers[0], 1, from, sizeof from);
    small = sent(movers[0], 2, note, sizeof note);
    OK(sluice_mover_wait(movers[1], in_small, WAIT_MS, NULL));
    EXPECT(SLUICE_MOVER_E_TIMEOUT, sluice_mover_test(movers[1], in_large, NULL));
    OK(sluice_mover_wait(movers[0], small, WAIT_MS, NULL));
    OK(sluice_mover_wait(movers[0], large, WAIT_MS, NULL));
    OK(sluice_mover_wait(movers[1], in_large, WAIT_MS, NULL));
    CHECK(strcmp((char *)got, "short") == 0);
    close_both(movers);
}

static void what_is_too_long_is_lost(void)
{
    unsigned char from[20000], to[20000];
    sluice_mover_report report = {.size = sizeof report};
    sluice_mover *movers[2];
    both(movers, NULL, 0);
    for (int is_early = 0; is_early < 2; is_early++) {
        sluice_mover_ticket in = 0, out;
        memset(to, 3, sizeof to);
        if (!is_early)
            in = asked(movers[1], 1, to, 9999);
        out = sent(movers[0], 1, from, sizeof from);
        OK(sluice_mover_wait(movers[0], out, WAIT_MS, NULL));
        if (is_early)
            in = asked(movers[1], 1, to, 9999);
        EXPECT(SLUICE_MOVER_E_TRUNCATED, sluice_mover_wait(movers[1], in, WAIT_MS, &report));
        CHECK(report.message_bytes == 20000);
        for (size_t i = 0; i < sizeof to; i++)
            CHECK(to[i] == 3);
    }
    fill(from, 100, 4); /* and the next one is right */
    OK(sluice_mover_wait(movers[0], sent(movers[0], 1, from, 100), WAIT_MS, NULL));
    OK(sluice_mover_wait(movers[1], asked(movers[1], 1, to, 100), WAIT_MS, NULL));
    CHECK(is_filled(to, 100, 4));
    close_both(movers);
}

/* --- pack and unpack -------------------------------------------------------------------------- */

typedef struct conversion {
    uint64_t calls, next, refused;
    uint64_t name;
} conversion;

static int packed(void *context, void *fragment, uint64_t offset, uint64_t bytes)
{
    conversion *of = context;
    CHECK(offset == of->next && bytes % 8 == 0);
    if (++of->calls == of->refused)
        return 1;
    of->next += bytes;
    for (uint64_t i = 0; i < bytes / 8; i++)
        ((uint64_t *)fragment)[i] = mixed(of->name + offset / 8 + i);
    return 0;
}

static int unpacked(void *context, const void *fragment, uint64_t offset, uint64_t bytes)
{
    conversion *of = context;
    CHECK(offset == of->next && bytes % 8 == 0);
    if (++of->calls == of->refused)
        return 1;
    of->next += bytes;
    for (uint64_t i = 0; i < bytes / 8; i++) {
        uint64_t word;
        memcpy(&word, (const unsigned char *)fragment + 8 * i, 8);
        CHECK(word == mixed(of->name + offset / 8 + i));
    }
    return 0;
}

static void fragments_are_packed_and_unpacked(bool is_early)
{
    sluice_mover *movers[2];
    conversion from = {.name = 3}, to = {.name = 3};
    sluice_mover_how pack = {.size = sizeof pack, .pack = packed, .context = &from};
    sluice_mover_how unpack = {.size = sizeof unpack, .unpack = unpacked, .context = &to};
    sluice_mover_ticket in = 0, out;
    unsigned char note[3] = "ab", got[3];
    pack.fragment_bytes = 1000;
    both(movers, NULL, 4608);
    if (!is_early)
        OK(sluice_mover_receive(movers[1], 0, 1, NULL, 100000, &unpack, &in));
    OK(sluice_mover_send(movers[0], 0, 1, NULL, 100000, &pack, &out));
    OK(sluice_mover_wait(movers[0], sent(movers[0], 2, note, 3), WAIT_MS, NULL));
    OK(sluice_mover_wait(movers[0], out, WAIT_MS, NULL));
    if (is_early)
        OK(sluice_mover_receive(movers[1], 0, 1, NULL, 100000, &unpack, &in));
    OK(sluice_mover_wait(movers[1], in, WAIT_MS, NULL));
    OK(sluice_mover_wait(movers[1], asked(movers[1], 2, got, 3), WAIT_MS, NULL));
    CHECK(from.calls == 100 && from.next == 100000 && to.next == 100000);
    CHECK(to.calls == 100 && memcmp(note, got, 3) == 0);
    close_both(movers);
}

static void who_packs_may_refuse(void)
{
    for (uint64_t refused = 1; refused <= 3; refused++) {
        sluice_mover *movers[2];
        conversion from = {.refused = refused};
        sluice_mover_how pack = {.size = sizeof pack, .pack = packed, .context = &from};
        sluice_mover_ticket out, in;
        unsigned char to[100000];
        both(movers, NULL, 0);
        pack.fragment_bytes = 1000;
        in = asked(movers[1], 1, to, sizeof to);
        /* An agent takes what it is asked in order: when this has left, the receive is there. */
        OK(sluice_mover_wait(movers[1], sent(movers[1], 3, NULL, 0), WAIT_MS, NULL));
        OK(sluice_mover_send(movers[0], 0, 1, NULL, sizeof to, &pack, &out));
        EXPECT(SLUICE_MOVER_E_CALLBACK, sluice_mover_wait(movers[0], out, WAIT_MS, NULL));
        if (refused > 1) /* else the other end has never heard of it */
            EXPECT(SLUICE_MOVER_E_CANCELLED, sluice_mover_wait(movers[1], in, WAIT_MS, NULL));
        OK(sluice_mover_wait(movers[0], sent(movers[0], 2, to, 5), WAIT_MS, NULL));
        OK(sluice_mover_wait(movers[1], asked(movers[1], 2, to, 5), WAIT_MS, NULL));
        close_both(movers);
    }
}

/* A message that is given up before its receive is as if it had never been sent. */
static void a_receive_behind_a_refusal_gets_the_next(void)
{
    static unsigned char from[100000], to[100000];
    sluice_mover *movers[2];
    conversion of = {.refused = 2};
    sluice_mover_how pack = {.size = sizeof pack, .pack = packed, .context = &of};
    sluice_mover_ticket out;
    both(movers, NULL, 0);
    pack.fragment_bytes = 1000;
    fill(from, sizeof from, 1);
    OK(sluice_mover_send(movers[0], 0, 1, NULL, sizeof from, &pack, &out));
    EXPECT(SLUICE_MOVER_E_CALLBACK, sluice_mover_wait(movers[0], out, WAIT_MS, NULL));
    OK(sluice_mover_wait(movers[0], sent(movers[0], 2, from, 5), WAIT_MS, NULL));
    OK(sluice_mover_wait(movers[1], asked(movers[1], 2, to, 5), WAIT_MS, NULL));
    out = sent(movers[0], 1, from, sizeof from);
    OK(sluice_mover_wait(movers[1], asked(movers[1], 1, to, sizeof to), WAIT_MS, NULL));
    OK(sluice_mover_wait(movers[0], out, WAIT_MS, NULL));
    CHECK(is_filled(to, sizeof to, 1));
    close_both(movers);
}

static void who_unpacks_may_refuse(void)
{
    sluice_mover *movers[2];
    conversion from = {.name = 1}, to = {.name = 1, .refused = 2};
    sluice_mover_how pack = {.size = sizeof pack, .pack = packed, .context = &from};
    sluice_mover_how unpack = {.size = sizeof unpack, .unpack = unpacked, .context = &to};
    sluice_mover_ticket in, out;
    both(movers, NULL, 0);
    OK(sluice_mover_receive(movers[1], 0, 1, NULL, 80000, &unpack, &in));
    OK(sluice_mover_send(movers[0], 0, 1, NULL, 80000, &pack, &out));
    OK(sluice_mover_wait(movers[0], out, WAIT_MS, NULL));
    EXPECT(SLUICE_MOVER_E_CALLBACK, sluice_mover_wait(movers[1], in, WAIT_MS, NULL));
    CHECK(to.calls == 2);
    close_both(movers);
}

/* --- credit ----------------------------------------------------------------------------------- */

/* On a busy machine nothing may move for a while though it can. */
static int patiently(sluice_mover *mover, sluice_mover_ticket ticket)
{
    int code;
    do {
        code = sluice_mover_wait(mover, ticket, WAIT_MS, NULL);
    } while (code == SLUICE_MOVER_E_STALLED);
    return code;
}

/* Without credit a message waits, is named, and goes on as soon as a receive is there; what is waited for
   needs none. */
static void who_has_no_credit_is_told(void)
{
    static unsigned char from[200000], to[200000];
    sluice_mover_options chosen = options();
    sluice_mover_report report = {.size = sizeof report};
    sluice_mover_statistics counted = {.size = sizeof counted};
    sluice_mover *movers[2];
    sluice_mover_ticket held, other;
    char text[200];
    chosen.early_bytes = 64000;
    chosen.max_peers = 1;
    chosen.stall_ms = 30;
    both(movers, &chosen, 0);
    fill(from, sizeof from, 1);
    held = sent(movers[0], 11, from, sizeof from);
    do {
        EXPECT(SLUICE_MOVER_E_STALLED, sluice_mover_wait(movers[0], held, -1, &report));
        OK(sluice_mover_get_statistics(movers[1], &counted));
    } while (report.moved_bytes < 15 * 4096 || counted.early_bytes < 15 * 4096);
    CHECK(report.peer == 0 && report.tag == 11 && report.message_bytes == sizeof from);
    CHECK(report.moved_bytes == 15 * 4096 && report.credit_bytes == 64000 - 15 * 4160);
    CHECK(sluice_mover_describe(&report, text, sizeof text) == strlen(text));
    CHECK(strcmp(text, "stalled: send to peer 0, tag 11: 61440 of 200000 bytes, "
                       "credit 1600 bytes") == 0);
    CHECK(sluice_mover_describe(&report, text, 8) > 8 && strcmp(text, "stalled") == 0);
    CHECK(counted.early_bytes == 15 * 4096 && counted.max_early_bytes == counted.early_bytes);
    /* Another message of the same peer, for which a receive waits, is not held up by it. */
    other = asked(movers[1], 12, to, 100000);
    OK(patiently(movers[0], sent(movers[0], 12, from, 100000)));
    OK(patiently(movers[1], other));
    CHECK(is_filled(to, 100000, 1));
    other = asked(movers[1], 11, to, sizeof to);
    OK(patiently(movers[1], other));
    OK(patiently(movers[0], held));
    CHECK(is_filled(to, sizeof to, 1));
    OK(sluice_mover_get_statistics(movers[1], &counted));
    CHECK(counted.early_bytes == 0 && counted.messages_received == 2);
    CHECK(counted.bytes_received == 300000);
    OK(sluice_mover_get_statistics(movers[0], &counted));
    CHECK(counted.messages_sent == 2 && counted.bytes_sent == 300000 && counted.held > 0);
    CHECK(counted.fragments_sent == 49 + 25 && counted.writes > 0 && counted.polls > 0);
    close_both(movers);
}

/* Credit comes back: many more early bytes than it in the course of time, and of messages too. */
static void credit_comes_back(void)
{
    unsigned char from[5000], to[5000];
    sluice_mover_options chosen = options();
    sluice_mover *movers[2];
    chosen.early_bytes = 8192;
    chosen.max_peers = 1;
    chosen.fragment_bytes = 600;
    both(movers, &chosen, 0);
    for (uint64_t i = 0; i < 3000; i++) {
        const uint64_t bytes = i % 5000;
        sluice_mover_ticket out;
        fill(from, bytes, i);
        out = sent(movers[0], 3, from, bytes);
        OK(sluice_mover_wait(movers[0], out, WAIT_MS, NULL)); /* it fits into the credit */
        OK(sluice_mover_wait(movers[1], asked(movers[1], 3, to, 5000), WAIT_MS, NULL));
        CHECK(is_filled(to, bytes, i));
    }
    close_both(movers);
}

/* More messages than records: the rest waits, and says so. */
static void records_are_bounded(void)
{
    enum { MESSAGES = 1100 };
    static sluice_mover_ticket out[MESSAGES];
    sluice_mover_options chosen = options();
    sluice_mover *movers[2];
    unsigned char byte = 5, got;
    chosen.stall_ms = 30;
    both(movers, &chosen, 0);
    for (int i = 0; i < MESSAGES; i++)
        out[i] = sent(movers[0], 1, &byte, 1);
    for (int i = 0; i < 1024; i++)
        OK(patiently(movers[0], out[i]));
    EXPECT(SLUICE_MOVER_E_STALLED, sluice_mover_wait(movers[0], out[1024], -1, NULL));
    for (int i = 0; i < MESSAGES; i++)
        OK(patiently(movers[1], asked(movers[1], 1, &got, 1)));
    for (int i = 1024; i < MESSAGES; i++)
        OK(patiently(movers[0], out[i]));
    close_both(movers);
}

/* --- cancelling ------------------------------------------------------------------------------- */

static void what_is_cancelled_comes_back(void)
{
    static unsigned char from[200000], to[200000];
    sluice_mover_options chosen = options();
    sluice_mover *movers[2];
    sluice_mover_ticket held, in;
    chosen.early_bytes = 20000;
    chosen.max_peers = 1;
    both(movers, &chosen, 0);
    in = asked(movers[1], 5, to, 10); /* nobody sends it */
    OK(sluice_mover_cancel(movers[1], in));
    EXPECT(SLUICE_MOVER_E_CANCELLED, sluice_mover_wait(movers[1], in, WAIT_MS, NULL));
    held = sent(movers[0], 6, from, sizeof from); /* begins, and has no credit for the rest */
    EXPECT(SLUICE_MOVER_E_TIMEOUT, sluice_mover_wait(movers[0], held, 30, NULL));
    OK(sluice_mover_cancel(movers[0], held));
    OK(sluice_mover_cancel(movers[0], held)); /* twice is once */
    EXPECT(SLUICE_MOVER_E_CANCELLED, sluice_mover_wait(movers[0], held, WAIT_MS, NULL));
    fill(from, 12000, 8); /* its credit came back with it */
    OK(sluice_mover_wait(movers[0], sent(movers[0], 6, from, 12000), WAIT_MS, NULL));
    OK(sluice_mover_wait(movers[1], asked(movers[1], 6, to, sizeof to), WAIT_MS, NULL));
    CHECK(is_filled(to, 12000, 8));
    in = asked(movers[1], 7, to, 12000);
    OK(sluice_mover_wait(movers[0], sent(movers[0], 7, from, 12000), WAIT_MS, NULL));
    OK(sluice_mover_wait(movers[1], in, WAIT_MS, NULL));
    EXPECT(SLUICE_MOVER_E_ARGUMENT, sluice_mover_cancel(movers[1], in));
    close_both(movers);
}

/* --- peers that go ---------------------------------------------------------------------------- */

static void who_goes_fails_its_own_tickets_only(void)
{
    static unsigned char from[1 << 20], to[1 << 20];
    sluice_mover *mover, *others[2];
    sluice_mover_ticket lost_in, lost_out, in, out;
    sluice_mover_report report = {.size = sizeof report};
    sluice_mover_peer state = {.size = sizeof state};
    uint32_t peer = 9;
    OK(sluice_mover_open(&mover, NULL));
    for (uint32_t i = 0; i < 2; i++) {
        int ends[2];
        pair_of(ends, 4608);
        OK(sluice_mover_add_peer(mover, ends[0], &peer));
        CHECK(peer == i);
        OK(sluice_mover_open(&others[i], NULL));
        OK(sluice_mover_add_peer(others[i], ends[1], &peer));
    }
    /* Two messages came in full before it went, of which one receive was there: the other is kept. */
    fill(from, 500, 1);
    OK(sluice_mover_wait(others[0], sent(others[0], 4, from, 500), WAIT_MS, NULL));
    OK(sluice_mover_receive(mover, 0, 9, to, sizeof to, NULL, &lost_in));
    OK(sluice_mover_send(mover, 0, 1, from, sizeof from, NULL, &lost_out));
    nap(20);
    OK(sluice_mover_close(others[0], SLUICE_MOVER_DRAIN, 10000));
    EXPECT(SLUICE_MOVER_E_PEER, sluice_mover_wait(mover, lost_in, WAIT_MS, &report));
    CHECK(report.peer == 0 && report.tag == 9 && report.moved_bytes == 0);
    (void)sluice_mover_wait(mover, lost_out, WAIT_MS, &report);
    CHECK(report.code == SLUICE_MOVER_E_PEER || report.moved_bytes == sizeof from);
    OK(sluice_mover_peer_state(mover, 0, &state));
    CHECK(state.code == SLUICE_MOVER_E_PEER);
    OK(sluice_mover_receive(mover, 0, 4, to, sizeof to, NULL, &in));
    OK(sluice_mover_wait(mover, in, WAIT_MS, &report));
    CHECK(report.moved_bytes == 500 && is_filled(to, 500, 1));
    OK(sluice_mover_send(mover, 0, 1, from, 5, NULL, &out));
    EXPECT(SLUICE_MOVER_E_PEER, sluice_mover_wait(mover, out, WAIT_MS, NULL));
    OK(sluice_mover_receive(mover, 0, 4, to, 5, NULL, &in));
    EXPECT(SLUICE_MOVER_E_PEER, sluice_mover_wait(mover, in, WAIT_MS, NULL));
    /* The other peer is as it was. */
    OK(sluice_mover_peer_state(mover, 1, &state));
    CHECK(state.code == SLUICE_MOVER_OK);
    in = asked(others[1], 2, to, sizeof to);
    fill(from, sizeof from, 2);
    OK(sluice_mover_send(mover, 1, 2, from, sizeof from, NULL, &out));
    OK(sluice_mover_wait(mover, out, WAIT_MS, NULL));
    OK(sluice_mover_wait(others[1], in, WAIT_MS, NULL));
    CHECK(is_filled(to, sizeof to, 2));
    OK(sluice_mover_close(others[1], SLUICE_MOVER_ABORT, 0));
    OK(sluice_mover_close(mover, SLUICE_MOVER_ABORT, 0));
}

/* A socket whose other end is no mover: closed, half closed, or talking nonsense. */
static void strangers_are_left(void)
{
    const unsigned char nonsense[40] = "GET / HTTP/1.1\r\nHost: somebody\r\n\r\n";
    const unsigned char half[10] = {1, 1}; /* of a header */
    for (int kind = 0; kind < 4; kind++) {
        int ends[2];
        uint32_t peer;
        unsigned char to[10];
        sluice_mover *mover;
        sluice_mover_ticket in;
        OK(sluice_mover_open(&mover, NULL));
        pair_of(ends, 0);
        OK(sluice_mover_add_peer(mover, ends[0], &peer));
        in = asked(mover, 1, to, sizeof to);
        if (kind == 0)
            CHECK(write(ends[1], nonsense, sizeof nonsense) == sizeof nonsense);
        if (kind == 1)
            close(ends[1]);
        if (kind == 2)
            CHECK(shutdown(ends[1], SHUT_WR) == 0);
        if (kind == 3)
            CHECK(write(ends[1], half, sizeof half) == sizeof half && shutdown(ends[1], SHUT_WR) == 0);
        EXPECT(kind == 0 ? SLUICE_MOVER_E_PROTOCOL : SLUICE_MOVER_E_PEER,
               sluice_mover_wait(mover, in, WAIT_MS, NULL));
        OK(sluice_mover_close(mover, SLUICE_MOVER_DRAIN, 10000));
        if (kind != 1)
            close(ends[1]);
    }
}

/* --- arguments and limits --------------------------------------------------------------------- */

static void arguments_are_checked(void)
{
    sluice_mover_options chosen = options();
    sluice_mover_report report = {0};
    sluice_mover_statistics counted = {0};
    sluice_mover *mover, *movers[2];
    sluice_mover_ticket tickets[3], ticket;
    uint32_t peer;
    int ends[2], datagrams[2], pipes[2], unconnected;
    unsigned char byte;
    EXPECT(SLUICE_MOVER_E_ARGUMENT, sluice_mover_open(NULL, NULL));
    chosen.size = 4;
    EXPECT(SLUICE_MOVER_E_ARGUMENT, sluice_mover_open(&mover, &chosen));
    chosen = options();
    chosen.max_fragment_bytes = (1u << 30) + 1;
    EXPECT(SLUICE_MOVER_E_ARGUMENT, sluice_mover_open(&mover, &chosen));
    chosen = options();
    chosen.max_peers = 1025;
    EXPECT(SLUICE_MOVER_E_ARGUMENT, sluice_mover_open(&mover, &chosen));
    chosen.max_peers = 1;
    chosen.max_tickets = 3;
    both(movers, &chosen, 0);
    mover = movers[0];
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams) == 0 && pipe(pipes) == 0);
    unconnected = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT(SLUICE_MOVER_E_SYSTEM, sluice_mover_add_peer(mover, datagrams[0], &peer));
    CHECK(errno == EPROTOTYPE);
    EXPECT(SLUICE_MOVER_E_SYSTEM, sluice_mover_add_peer(mover, pipes[0], &peer));
    EXPECT(SLUICE_MOVER_E_SYSTEM, sluice_mover_add_peer(mover, unconnected, &peer));
    EXPECT(SLUICE_MOVER_E_ARGUMENT, sluice_mover_add_peer(mover, -1, &peer));
    EXPECT(SLUICE_MOVER_E_ARGUMENT, sluice_mover_add_peer(NULL, pipes[0], &peer));
    pair_of(ends, 0);
    EXPECT(SLUICE_MOVER_E_ARGUMENT, sluice_mover_add_peer(mover, ends[0], NULL));
    EXPECT(SLUICE_MOVER_E_LIMIT, sluice_mover_add_peer(mover, ends[0], &peer));
    CHECK(fcntl(ends[0], F_GETFD) >= 0); /* it stayed the caller's */
    EXPECT(SLUICE_MOVER_E_ARGUMENT, sluice_mover_send(mover, 1, 0, &byte, 1, NULL, &ticket));
    EXPECT(SLUICE_MOVER_E_ARGUMENT, sluice_mover_send(mover, 0, 0, NULL, 1, NULL, &ticket));
    EXPECT(SLUICE_MOVER_E_ARGUMENT, sluice_mover_send(mover, 0, 0, &byte, 1, NULL, NULL));
    EXPECT(SLUICE_MOVER_E_ARGUMENT, sluice_mover_receive(mover, 0, 0, NULL, 1, NULL, &ticket));
    for (int i = 0; i < 3; i++)
        tickets[i] = asked(mover, 1, &byte, 1);
    EXPECT(SLUICE_MOVER_E_LIMIT, sluice_mover_send(mover, 0, 0, &byte, 1, NULL, &ticket));
    EXPECT(SLUICE_MOVER_E_ARGUMENT, sluice_mover_test(mover, tickets[0], &report)); /* no size */
    EXPECT(SLUICE_MOVER_E_ARGUMENT, sluice_mover_get_statistics(mover, &counted));
    for (int i = 0; i < 3; i++) {
        OK(sluice_mover_cancel(mover, tickets[i]));
        EXPECT(SLUICE_MOVER_E_CANCELLED, sluice_mover_wait(mover, tickets[i], WAIT_MS, NULL));
        EXPECT(SLUICE_MOVER_E_ARGUMENT, sluice_mover_wait(mover, tickets[i], WAIT_MS, NULL));
    }
    EXPECT(SLUICE_MOVER_E_ARGUMENT, sluice_mover_wait(mover, 0, WAIT_MS, NULL));
    EXPECT(SLUICE_MOVER_E_ARGUMENT, sluice_mover_wait(mover, UINT64_MAX, WAIT_MS, NULL));
    EXPECT(SLUICE_MOVER_E_ARGUMENT, sluice_mover_wait(NULL, 1, WAIT_MS, NULL));
    EXPECT(SLUICE_MOVER_E_ARGUMENT, sluice_mover_close(mover, 7, 0));
    OK(sluice_mover_close(NULL, SLUICE_MOVER_DRAIN, 0));
    close_both(movers);
    for (int i = 0; i < 2; i++) {
        close(ends[i]);
        close(datagrams[i]);
        close(pipes[i]);
    }
    close(unconnected);
    CHECK(strcmp(sluice_mover_version(), "0.1.0") == 0);
    CHECK(sluice_mover_describe(NULL, NULL, 0) == 0);
    for (int code = -46; code <= 0; code++)
        CHECK(sluice_mover_error_text(code)[0] != 0);
}

static void a_wait_says_not_yet(void)
{
    sluice_mover_options chosen = options();
    sluice_mover *movers[2];
    unsigned char byte = 1, got = 0;
    sluice_mover_ticket in;
    chosen.stall_ms = 20;
    both(movers, &chosen, 0);
    in = asked(movers[1], 1, &got, 1);
    EXPECT(SLUICE_MOVER_E_TIMEOUT, sluice_mover_wait(movers[1], in, 5, NULL));
    EXPECT(SLUICE_MOVER_E_STALLED, sluice_mover_wait(movers[1], in, -1, NULL));
    OK(sluice_mover_wait(movers[0], sent(movers[0], 1, &byte, 1), WAIT_MS, NULL));
    while (sluice_mover_wait(movers[1], in, -1, NULL) == SLUICE_MOVER_E_STALLED) {
    }
    CHECK(got == 1);
    close_both(movers);
    chosen.never_stall = 1;
    both(movers, &chosen, 0);
    in = asked(movers[1], 1, &got, 1);
    EXPECT(SLUICE_MOVER_E_TIMEOUT, sluice_mover_wait(movers[1], in, 60, NULL));
    close_both(movers);
}

/* --- closing and forking ---------------------------------------------------------------------- */

typedef struct waiter {
    sluice_mover *mover;
    sluice_mover_ticket ticket;
    int code;
} waiter;

static void *waits(void *argument)
{
    waiter *one = argument;
    one->code = sluice_mover_wait(one->mover, one->ticket, -1, NULL);
    return NULL;
}

static void closing_ends_waits(void)
{
    sluice_mover *movers[2];
    unsigned char byte;
    waiter others[4];
    pthread_t threads[4];
    both(movers, NULL, 0);
    for (int i = 0; i < 4; i++) {
        others[i].mover = movers[0];
        others[i].ticket = asked(movers[0], 1, &byte, 1);
        CHECK(pthread_create(&threads[i], NULL, waits, &others[i]) == 0);
    }
    nap(30);
    OK(sluice_mover_close(movers[0], SLUICE_MOVER_ABORT, 0));
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(others[i].code == SLUICE_MOVER_E_CLOSED);
    }
    OK(sluice_mover_close(movers[1], SLUICE_MOVER_ABORT, 0));
}

/* What was sent is there though its sender has gone; what cannot leave is said. */
static void draining_loses_nothing(void)
{
    static unsigned char from[3 << 20], to[3 << 20];
    sluice_mover_options chosen = options();
    sluice_mover *movers[2];
    sluice_mover_ticket in;
    both(movers, &chosen, 4608);
    fill(from, sizeof from, 3);
    sent(movers[0], 1, from, sizeof from);
    sent(movers[0], 1, from, 77);
    OK(sluice_mover_close(movers[0], SLUICE_MOVER_DRAIN, WAIT_MS));
    in = asked(movers[1], 1, to, sizeof to);
    OK(sluice_mover_wait(movers[1], in, WAIT_MS, NULL));
    CHECK(is_filled(to, sizeof to, 3));
    OK(sluice_mover_wait(movers[1], asked(movers[1], 1, to, sizeof to), WAIT_MS, NULL));
    CHECK(is_filled(to, 77, 3));
    OK(sluice_mover_close(movers[1], SLUICE_MOVER_DRAIN, WAIT_MS));
    chosen.early_bytes = 5000;
    both(movers, &chosen, 4608);
    sent(movers[0], 1, from, sizeof from);
    EXPECT(SLUICE_MOVER_E_TIMEOUT, sluice_mover_close(movers[0], SLUICE_MOVER_DRAIN, 30));
    OK(sluice_mover_close(movers[1], SLUICE_MOVER_DRAIN, WAIT_MS));
}

static void a_child_has_no_mover(void)
{
    sluice_mover *movers[2];
    unsigned char byte = 6, got = 0;
    sluice_mover_ticket in;
    int status;
    pid_t child;
    both(movers, NULL, 0);
    OK(sluice_mover_trace_begin(movers[0]));
    in = asked(movers[1], 1, &got, 1);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        sluice_mover_ticket ticket;
        sluice_mover_statistics counted = {.size = sizeof counted};
        uint32_t peer;
        EXPECT(SLUICE_MOVER_E_FORK, sluice_mover_send(movers[0], 0, 1, &byte, 1, NULL, &ticket));
        EXPECT(SLUICE_MOVER_E_FORK, sluice_mover_wait(movers[1], in, -1, NULL));
        EXPECT(SLUICE_MOVER_E_FORK, sluice_mover_cancel(movers[1], in));
        EXPECT(SLUICE_MOVER_E_FORK, sluice_mover_add_peer(movers[1], 0, &peer));
        EXPECT(SLUICE_MOVER_E_FORK, sluice_mover_get_statistics(movers[1], &counted));
        EXPECT(SLUICE_MOVER_E_FORK, sluice_mover_trace_begin(movers[1]));
        for (int i = 0; i < 2; i++)
            EXPECT(SLUICE_MOVER_E_FORK, sluice_mover_close(movers[i], SLUICE_MOVER_DRAIN, 1000));
        if (STARTS_THREADS_IN_CHILD) { /* a mover of its own may trace: the other is closed */
            OK(sluice_mover_open(&movers[0], NULL));
            OK(sluice_mover_trace_begin(movers[0]));
            OK(sluice_mover_close(movers[0], SLUICE_MOVER_ABORT, 0));
        }
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    OK(sluice_mover_wait(movers[0], sent(movers[0], 1, &byte, 1), WAIT_MS, NULL));
    OK(sluice_mover_wait(movers[1], in, WAIT_MS, NULL));
    CHECK(got == 6);
    close_both(movers);
}

/* --- tables and measuring --------------------------------------------------------------------- */

static void messages_are_cut_by_the_table(const char *path)
{
    static sluice_live live;
    unsigned char from[10000], to[10000];
    sluice_mover_options chosen = options();
    sluice_mover_report report = {.size = sizeof report};
    sluice_mover *movers[2];
    sluice_mover_ticket out;
    CHECK(sluice_live_open(&live, path) == SLUICE_OK);
    chosen.table = &live;
    chosen.fragment_bytes = 100;
    both(movers, &chosen, 0);
    OK(sluice_mover_wait(movers[0], sent(movers[0], 1, from, 333), WAIT_MS, &report));
    CHECK(report.fragments == 2);
    OK(sluice_mover_wait(movers[1], asked(movers[1], 1, to, 333), WAIT_MS, &report));
    CHECK(report.fragments == 2);
    OK(sluice_mover_wait(movers[0], sent(movers[0], 1, from, 10000), WAIT_MS, &report));
    CHECK(report.fragments == 100); /* outside its range */
    OK(sluice_mover_wait(movers[1], asked(movers[1], 1, to, 10000), WAIT_MS, NULL));
    OK(sluice_mover_send(movers[0], 0, 1, from, 333,
                         &(sluice_mover_how){.size = sizeof(sluice_mover_how), .fragment_bytes = 50},
                         &out));
    OK(sluice_mover_wait(movers[0], out, WAIT_MS, &report));
    CHECK(report.fragments == 7);
    OK(sluice_mover_wait(movers[1], asked(movers[1], 1, to, 10000), WAIT_MS, NULL));
    CHECK(sluice_live_reclaim(&live) == 0); /* nobody is left inside */
    close_both(movers);
    chosen.max_fragment_bytes = 150; /* cuts again: 146, 150, 37 */
    both(movers, &chosen, 0);
    OK(sluice_mover_wait(movers[0], sent(movers[0], 1, from, 333), WAIT_MS, &report));
    CHECK(report.fragments == 3);
    OK(sluice_mover_wait(movers[1], asked(movers[1], 1, to, 333), WAIT_MS, NULL));
    close_both(movers);
    sluice_live_close(&live);
}

static size_t lines_of(const char *path)
{
    FILE *file = fopen(path, "r");
    size_t lines = 0;
    char line[256];
    CHECK(file);
    while (fgets(line, sizeof line, file))
        lines += line[0] != '#';
    fclose(file);
    return lines;
}

static void fragments_are_traced(const char *folder)
{
    char path[300], events[300];
    unsigned char from[40960], to[40960];
    sluice_mover *movers[2];
    sluice_mover_ticket in[2], out[2];
    snprintf(path, sizeof path, "%s/traced.csv", folder);
    snprintf(events, sizeof events, "%s/events.csv", folder);
    for (int turn = 0; turn < 2; turn++) {
        both(movers, NULL, 0);
        EXPECT(SLUICE_MOVER_E_ARGUMENT, sluice_mover_trace_end(movers[0], path, NULL));
        OK(sluice_mover_trace_begin(movers[0]));
        EXPECT(SLUICE_MOVER_E_BUSY, sluice_mover_trace_begin(movers[1]));
        for (int i = 0; i < 2; i++) {
            in[i] = asked(movers[i], 1, to, sizeof to);
            out[i] = sent(movers[i], 1, from, sizeof from);
            OK(sluice_mover_wait(movers[i], out[i], WAIT_MS, NULL));
        }
        for (int i = 0; i < 2; i++)
            OK(sluice_mover_wait(movers[i], in[i], WAIT_MS, NULL));
        OK(sluice_mover_trace_end(movers[0], path, events));
        CHECK(lines_of(path) == 1 + 10 && lines_of(events) == 1 + 20);
        OK(sluice_mover_trace_begin(movers[0])); /* closed while it traces: another one may */
        close_both(movers);
    }
    both(movers, NULL, 0);
    OK(sluice_mover_trace_begin(movers[1]));
    EXPECT(SLUICE_MOVER_E_SYSTEM, sluice_mover_trace_end(movers[1], "/no/such/folder/x", NULL));
    CHECK(errno == ENOENT);
    close_both(movers);
}

/* In place of what agents sleep in, a file that cannot be slept in. */
static void no_agent_sleeps(void)
{
    DIR *files = opendir("/proc/self/fd");
    const int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK(files != NULL && other >= 0);
    for (const struct dirent *one = readdir(files); one != NULL; one = readdir(files)) {
        char what[100];
        const ssize_t length = readlinkat(dirfd(files), one->d_name, what, sizeof what);
        if (length > 0 && memmem(what, (size_t)length, "[eventpoll]", 11) != NULL)
            CHECK(dup2(other, atoi(one->d_name)) >= 0);
    }
    closedir(files);
    close(other);
}

/* Where the system refuses to let it sleep the agent ends, and whoever ends a trace then does not wait for it. */
static void a_trace_ends_without_an_agent(const char *folder)
{
    char path[300];
    unsigned char byte = 1;
    sluice_mover *movers[2];
    sluice_mover_ticket ticket;
    int code = SLUICE_MOVER_OK;
    snprintf(path, sizeof path, "%s/ended.csv", folder);
    both(movers, NULL, 0);
    OK(sluice_mover_trace_begin(movers[0]));
    OK(sluice_mover_wait(movers[0], sent(movers[0], 1, &byte, 1), WAIT_MS, NULL)); /* it traces */
    no_agent_sleeps();
    while (code == SLUICE_MOVER_OK) {
        code = sluice_mover_send(movers[0], 0, 1, &byte, 1, NULL, &ticket);
        if (code == SLUICE_MOVER_OK)
            sluice_mover_wait(movers[0], ticket, WAIT_MS, NULL);
    }
    CHECK(code == SLUICE_MOVER_E_CLOSED);
    OK(sluice_mover_trace_end(movers[0], path, NULL));
    for (int i = 0; i < 2; i++)
        OK(sluice_mover_close(movers[i], SLUICE_MOVER_ABORT, 0));
}

typedef struct samples {
    uint64_t count, end;
    uint64_t sizes[10];
    double total_us, last_us;
} samples;

static int sampled(void *context, const sluice_mover_sample *sample)
{
    samples *taken = context;
    CHECK(sample->repetition == taken->count % 3);
    CHECK(sample->sender_us > 0.0 && sample->receiver_us > 0.0 && sample->wire_us >= 0.0);
    CHECK(sample->total_us > 0.0);
    taken->sizes[taken->count++] = sample->message_bytes;
    taken->last_us = sample->total_us;
    taken->total_us += sample->total_us;
    return taken->count == taken->end;
}

static void *replies(void *argument)
{
    waiter *one = argument;
    one->code = sluice_mover_calibrate_reply(one->mover, 0, 77, NULL, WAIT_MS);
    return NULL;
}

static void a_way_is_calibrated(void)
{
    const uint64_t sizes[] = {1, 4096, 100000}, zero = 0, huge = 3u << 20;
    for (uint64_t end = 0; end < 5; end += 4) {
        sluice_mover *movers[2];
        samples taken = {.end = end};
        struct timespec begin, now;
        waiter other;
        pthread_t thread;
        both(movers, NULL, 0);
        other.mover = movers[1];
        CHECK(pthread_create(&thread, NULL, replies, &other) == 0);
        EXPECT(SLUICE_MOVER_E_ARGUMENT,
               sluice_mover_calibrate(movers[0], 0, 77, &zero, 1, 3, NULL, WAIT_MS, sampled, &taken));
        EXPECT(SLUICE_MOVER_E_ARGUMENT,
               sluice_mover_calibrate(movers[0], 0, 77, &huge, 1, 3, NULL, WAIT_MS, sampled, &taken));
        clock_gettime(CLOCK_MONOTONIC, &begin);
        EXPECT(end ? SLUICE_MOVER_E_CALLBACK : SLUICE_MOVER_OK,
               sluice_mover_calibrate(movers[0], 0, 77, sizes, 3, 3, NULL, WAIT_MS, sampled, &taken));
        clock_gettime(CLOCK_MONOTONIC, &now); /* as long as each took, nothing travels behind it */
        CHECK((double)(now.tv_sec - begin.tv_sec) * 1e6 + (double)(now.tv_nsec - begin.tv_nsec) / 1e3 >=
              2.0 * taken.total_us - taken.last_us);
        CHECK(taken.count == (end ? end : 9) && taken.sizes[0] == 1 && taken.sizes[3] == 4096);
        CHECK(pthread_join(thread, NULL) == 0 && other.code == SLUICE_MOVER_OK);
        close_both(movers);
    }
}

/* Answers a calibration with notes of this machine whose times no clock has. */
static void whose_times_are_of_no_clock_is_told(void)
{
    const uint64_t size = 100, never[2][2] = {{UINT64_C(1) << 63, 1}, {INT64_MAX, UINT64_MAX}};
    for (int which = 0; which < 2; which++) {
        unsigned char note[64] = {0}, bytes[200];
        samples taken = {0};
        sluice_mover *mover;
        uint32_t peer;
        int ends[2];
        FILE *boot = fopen("/proc/sys/kernel/random/boot_id", "re");
        CHECK(boot != NULL && fread(note + 24, 1, 39, boot) > 0 && fclose(boot) == 0);
        store(note + 8, 8, never[which][0]);
        store(note + 16, 8, never[which][1]);
        pair_of(ends, 0);
        OK(sluice_mover_open(&mover, NULL));
        OK(sluice_mover_add_peer(mover, ends[0], &peer));
        for (uint64_t number = 0; number <= 2; number++) {
            frame_header header = {.kind = FRAME_CREDIT, .number = 1 << 20, .tag = 1024};
            uint32_t length;
            if (number > 0)
                header = (frame_header){.kind = FRAME_FIRST, .flags = FLAG_EARLY, .tag = 7,
                    .number = number - 1, .bytes = sizeof note, .message_bytes = sizeof note};
            length = encode(bytes, &header);
            memcpy(bytes + length, note, header.bytes);
            length += header.bytes;
            CHECK(send(ends[1], bytes, length, MSG_NOSIGNAL) == (ssize_t)length);
        }
        EXPECT(SLUICE_MOVER_E_CLOCK,
               sluice_mover_calibrate(mover, peer, 7, &size, 1, 1, NULL, WAIT_MS, sampled, &taken));
        CHECK(taken.count == 0);
        OK(sluice_mover_close(mover, SLUICE_MOVER_ABORT, 0));
        close(ends[1]);
    }
}

/* A peer that is no mover, but knows what one says. */
static int no_mover(sluice_mover **mover, const sluice_mover_options *chosen)
{
    uint32_t peer;
    int ends[2];
    pair_of(ends, 0);
    OK(sluice_mover_open(mover, chosen));
    OK(sluice_mover_add_peer(*mover, ends[0], &peer));
    return ends[1];
}

/* A frame, and so much of its fragment. */
static void says(int file, const frame_header *header, const unsigned char *content, uint32_t bytes)
{
    unsigned char at[FIRST_BYTES + 100] = {0};
    const uint32_t length = encode(at, header);
    CHECK(bytes <= 100);
    if (bytes > 0)
        memcpy(at + length, content, bytes);
    CHECK(send(file, at, length + bytes, MSG_NOSIGNAL) == (ssize_t)(length + bytes));
}

static void grants(int file)
{
    const frame_header credit = {.kind = FRAME_CREDIT, .number = 8 << 20, .tag = 1024};
    says(file, &credit, NULL, 0);
}

/* The first message, of these bytes, of which the first `bytes` come now. */
static void begins(int file, uint64_t number, const unsigned char *content, uint32_t whole, uint32_t bytes)
{
    const frame_header first = {.kind = FRAME_FIRST, .flags = FLAG_EARLY, .tag = 7, .number = number,
                                .bytes = whole, .message_bytes = whole};
    says(file, &first, content, bytes);
}

static int never_called(void *context, const void *fragment, uint64_t offset, uint64_t bytes)
{
    (void)context, (void)fragment, (void)offset, (void)bytes;
    abort();
}

/* What a peer leaves half done is no reason to wait for it; and what comes of it later hurts nobody. */
static void a_calibration_keeps_its_limit(void)
{
    enum { SOON_MS = 30, LONG = 4 << 20 };
    const uint64_t sizes[] = {100, LONG};
    const sluice_mover_how how = {.size = sizeof how, .unpack = never_called};
    unsigned char note[64] = {0}, rest[1000] = {0};
    sluice_mover_options chosen = options();
    samples taken = {0};
    FILE *boot = fopen("/proc/sys/kernel/random/boot_id", "re");
    sluice_mover *mover;
    int file;
    CHECK(boot != NULL && fread(note + 24, 1, 39, boot) > 0 && fclose(boot) == 0);
    chosen.early_bytes = 16u * 3 * LONG;
    chosen.max_fragment_bytes = LONG;

    for (uint32_t bytes = 0; bytes < sizeof note; bytes += 10) { /* half a note, or nothing */
        file = no_mover(&mover, &chosen);
        grants(file);
        if (bytes > 0)
            begins(file, 0, note, sizeof note, bytes);
        EXPECT(SLUICE_MOVER_E_TIMEOUT,
               sluice_mover_calibrate(mover, 0, 7, sizes, 1, 1, NULL, SOON_MS, sampled, &taken));
        if (bytes > 0)
            CHECK(send(file, note + bytes, sizeof note - bytes, MSG_NOSIGNAL) > 0);
        close(file);
        OK(sluice_mover_close(mover, SLUICE_MOVER_DRAIN, WAIT_MS));
    }

    file = no_mover(&mover, &chosen); /* a message that the peer reads none of */
    grants(file);
    begins(file, 0, note, sizeof note, sizeof note);
    EXPECT(SLUICE_MOVER_E_TIMEOUT,
           sluice_mover_calibrate(mover, 0, 7, sizes + 1, 1, 1, NULL, SOON_MS, sampled, &taken));
    close(file);
    OK(sluice_mover_close(mover, SLUICE_MOVER_ABORT, 0));

    file = no_mover(&mover, &chosen); /* the other way round: a fragment that is not whole */
    grants(file);
    note[0] = 100;
    begins(file, 0, note, sizeof note, sizeof note);
    begins(file, 1, note, 100, 10);
    EXPECT(SLUICE_MOVER_E_TIMEOUT, sluice_mover_calibrate_reply(mover, 0, 7, &how, SOON_MS));
    CHECK(send(file, rest, 90, MSG_NOSIGNAL) == 90);
    close(file);
    OK(sluice_mover_close(mover, SLUICE_MOVER_DRAIN, WAIT_MS));
    CHECK(taken.count == 0);
}

/* --- many peers ------------------------------------------------------------------------------- */

/* More at once than one call of the system says, and each gets its own. */
static void many_peers_have_their_turns(void)
{
    enum { PEERS = 200 };
    static unsigned char from[PEERS][3000], to[PEERS][3000];
    sluice_mover_options chosen = options();
    sluice_mover_ticket in[PEERS], out[PEERS];
    sluice_mover *movers[2];
    chosen.max_peers = PEERS;
    chosen.early_bytes = 64 << 20;
    chosen.fragment_bytes = 1000;
    for (int i = 0; i < 2; i++)
        OK(sluice_mover_open(&movers[i], &chosen));
    for (uint32_t i = 0; i < PEERS; i++) {
        uint32_t peer;
        int ends[2];
        pair_of(ends, 0);
        for (int j = 0; j < 2; j++) {
            OK(sluice_mover_add_peer(movers[j], ends[j], &peer));
            CHECK(peer == i);
        }
    }
    for (uint32_t i = 0; i < PEERS; i++) {
        fill(from[i], sizeof from[i], i);
        OK(sluice_mover_send(movers[0], i, 1, from[i], sizeof from[i], NULL, &out[i]));
    }
    for (uint32_t i = 0; i < PEERS; i++)
        OK(sluice_mover_receive(movers[1], i, 1, to[i], sizeof to[i], NULL, &in[i]));
    for (uint32_t i = 0; i < PEERS; i++) {
        OK(sluice_mover_wait(movers[0], out[i], WAIT_MS, NULL));
        OK(sluice_mover_wait(movers[1], in[i], WAIT_MS, NULL));
        CHECK(is_filled(to[i], sizeof to[i], i));
    }
    close_both(movers);
}

/* Fewer files may be open at once than there have been peers. */
static void peers_that_ended_take_no_file(void)
{
    enum { PEERS = 100, LIVE = 1 };
    const unsigned char byte = 5;
    unsigned char here = 0;
    sluice_mover_options chosen = options();
    struct rlimit before, low;
    sluice_mover *movers[2];
    sluice_mover_ticket out;
    chosen.max_peers = PEERS + LIVE;
    both(movers, &chosen, 0);
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    low = before;
    low.rlim_cur = PEERS / 2;
    CHECK(setrlimit(RLIMIT_NOFILE, &low) == 0);
    for (uint32_t i = 1; i <= PEERS; i++) {
        sluice_mover_ticket in;
        uint32_t peer;
        int ends[2];
        pair_of(ends, 0);
        OK(sluice_mover_add_peer(movers[0], ends[0], &peer));
        CHECK(peer == i);
        OK(sluice_mover_receive(movers[0], i, 1, &here, 1, NULL, &in));
        close(ends[1]);
        EXPECT(SLUICE_MOVER_E_PEER, sluice_mover_wait(movers[0], in, WAIT_MS, NULL));
    }
    out = sent(movers[1], 1, &byte, 1);
    OK(sluice_mover_wait(movers[0], asked(movers[0], 1, &here, 1), WAIT_MS, NULL));
    OK(sluice_mover_wait(movers[1], out, WAIT_MS, NULL));
    CHECK(here == byte && setrlimit(RLIMIT_NOFILE, &before) == 0);
    close_both(movers);
}

/* --- over TCP --------------------------------------------------------------------------------- */

static void connected(int ends[2])
{
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof place;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(listener >= 0 && bind(listener, (struct sockaddr *)&place, length) == 0);
    CHECK(listen(listener, 1) == 0 && getsockname(listener, (struct sockaddr *)&place, &length) == 0);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(ends[0], (struct sockaddr *)&place, length) == 0);
    ends[1] = accept(listener, NULL, NULL);
    CHECK(ends[1] >= 0);
    close(listener);
}

/* Buffers are as asked, both send first, and one is reset in the middle. */
static void over_tcp(void)
{
    static unsigned char from[2][1 << 20], to[2][1 << 20];
    sluice_mover_options chosen = options();
    sluice_mover_peer state = {.size = sizeof state};
    sluice_mover *movers[2];
    sluice_mover_ticket in[2], out[2];
    const struct linger at_once = {.l_onoff = 1};
    int ends[2];
    uint32_t peer;
    chosen.send_buffer_bytes = chosen.receive_buffer_bytes = 16384;
    connected(ends);
    for (int i = 0; i < 2; i++) {
        OK(sluice_mover_open(&movers[i], &chosen));
        OK(sluice_mover_add_peer(movers[i], ends[i], &peer));
        OK(sluice_mover_peer_state(movers[i], 0, &state));
        CHECK(state.send_buffer_bytes == 2 * 16384 && state.receive_buffer_bytes == 2 * 16384);
        fill(from[i], sizeof from[i], (uint64_t)i);
        out[i] = sent(movers[i], 1, from[i], sizeof from[i]);
    }
    for (int i = 0; i < 2; i++)
        OK(sluice_mover_wait(movers[i], out[i], WAIT_MS, NULL));
    for (int i = 0; i < 2; i++)
        in[i] = asked(movers[i], 1, to[i], sizeof to[i]);
    for (int i = 0; i < 2; i++) {
        OK(sluice_mover_wait(movers[i], in[i], WAIT_MS, NULL));
        CHECK(is_filled(to[i], sizeof to[i], (uint64_t)!i));
    }
    CHECK(setsockopt(ends[0], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    in[1] = asked(movers[1], 5, to[1], 10);
    OK(sluice_mover_close(movers[0], SLUICE_MOVER_ABORT, 0));
    EXPECT(SLUICE_MOVER_E_PEER, sluice_mover_wait(movers[1], in[1], WAIT_MS, NULL));
    OK(sluice_mover_peer_state(movers[1], 0, &state));
    CHECK(state.code == SLUICE_MOVER_E_PEER && state.error == ECONNRESET);
    OK(sluice_mover_close(movers[1], SLUICE_MOVER_DRAIN, 1000));
}

int main(int count, char **words)
{
    CHECK(count >= 2);
    every_size_arrives(0, 4096);
    every_size_arrives(4608, 1000);
    every_size_arrives(4608, 70000);
    tags_keep_their_order();
    every_order_is_right();
    a_short_message_passes_a_long_one();
    what_is_too_long_is_lost();
    fragments_are_packed_and_unpacked(false);
    fragments_are_packed_and_unpacked(true);
    who_packs_may_refuse();
    a_receive_behind_a_refusal_gets_the_next();
    who_unpacks_may_refuse();
    who_has_no_credit_is_told();
    credit_comes_back();
    records_are_bounded();
    what_is_cancelled_comes_back();
    who_goes_fails_its_own_tickets_only();
    strangers_are_left();
    arguments_are_checked();
    a_wait_says_not_yet();
    closing_ends_waits();
    draining_loses_nothing();
    a_child_has_no_mover();
    if (count > 2)
        messages_are_cut_by_the_table(words[2]);
    fragments_are_traced(words[1]);
    a_trace_ends_without_an_agent(words[1]);
    a_way_is_calibrated();
    whose_times_are_of_no_clock_is_told();
    a_calibration_keeps_its_limit();
    many_peers_have_their_turns();
    peers_that_ended_take_no_file();
    over_tcp();
    printf("mover: all as documented\n");
    return 0;
}
