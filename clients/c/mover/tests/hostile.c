/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that send what no mover sends: frames that were changed, cut, repeated, or drawn. Whatever comes, every ticket ends,
   no more memory is taken than was granted, and another peer's messages arrive.

       hostile PEERS SEED */
#include "both_ends.h"

#include "../src/frame.h"

enum { ROOM = 1 << 15, AT_ONCE = 64, WINDOW = 32768, POSTED = 3 };

static uint64_t state;

static size_t put_frame(unsigned char *at, uint8_t kind, uint8_t flags, uint32_t tag,
                        uint64_t number, uint32_t bytes, uint64_t message_bytes)
{
    const frame_header header = {.kind = kind, .flags = flags, .tag = tag, .number = number,
                                 .bytes = bytes, .message_bytes = message_bytes};
    size_t length = encode(at, &header);
    memset(at + length, (int)number, bytes);
    return length + bytes;
}

static uint64_t any(void)
{
    static const uint64_t values[] = {0, 1, 2, 63, 64, 65, 4096, 32767, 32768, 65536, UINT32_MAX,
                                      UINT64_C(1) << 32, UINT64_C(1) << 62, UINT64_MAX};
    return drawn(&state, 3) ? values[drawn(&state, sizeof values / sizeof *values)]
                            : drawn(&state, 5000);
}

/* What a mover could send: messages of some tags in fragments, credit and needs. */
static size_t plausible(unsigned char *at)
{
    size_t length = put_frame(at, FRAME_CREDIT, 0, 1024, 1 << 20, 0, 0);
    uint64_t messages = 1 + drawn(&state, 6);
    for (uint64_t number = 0; number < messages; number++) {
        uint64_t bytes = drawn(&state, 3000), done = drawn(&state, bytes + 1);
        const uint32_t tag = (uint32_t)drawn(&state, 4);
        length += put_frame(at + length, FRAME_FIRST, done > 0, tag, number, (uint32_t)done, bytes);
        while (done < bytes && drawn(&state, 8) > 0) {
            const uint64_t next = 1 + drawn(&state, bytes - done);
            length += put_frame(at + length, FRAME_DATA, FLAG_EARLY, tag, number, (uint32_t)next, 0);
            done += next;
        }
        if (done < bytes && drawn(&state, 2))
            length += put_frame(at + length, FRAME_ABORT, 0, 0, number, 0, 0);
        if (drawn(&state, 4) == 0)
            length += put_frame(at + length, FRAME_NEED, 0, 0, 0, 0, 0);
    }
    return length;
}

/* Frames of any kind with fields of any value. */
static size_t drawn_frames(unsigned char *at)
{
    size_t length = 0;
    for (uint64_t i = 1 + drawn(&state, 30); i > 0; i--) {
        const uint32_t bytes = (uint32_t)drawn(&state, 300);
        length += put_frame(at + length, (uint8_t)drawn(&state, 9), (uint8_t)drawn(&state, 3),
                            (uint32_t)drawn(&state, 4), drawn(&state, 4), bytes, bytes);
        store(at + length - bytes - 8 * drawn(&state, 4), 8, any());
    }
    return length;
}

static size_t hostile(unsigned char *at)
{
    size_t length = drawn(&state, 4) ? plausible(at) : drawn_frames(at);
    for (uint64_t i = drawn(&state, 4); i > 0 && length > 8; i--) {
        const size_t place = drawn(&state, length - 8);
        switch (drawn(&state, 5)) {
        case 0: at[place] ^= (unsigned char)(1u << drawn(&state, 8)); break;
        case 1: store(at + place / 8 * 8, 8, any()); break;
        case 2: store(at + place / 4 * 4, 4, any()); break;
        case 3: memmove(at + place, at + place + 8, length - place - 8), length -= 8; break;
        default: length = place; break;
        }
    }
    return length;
}

/* Write as much as the mover takes; it may close at any byte. */
static void write_all(int file, const unsigned char *bytes, size_t length)
{
    while (length > 0) {
        const size_t most = 1 + drawn(&state, length);
        const ssize_t written = send(file, bytes, most, MSG_NOSIGNAL);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return;
        bytes += written;
        length -= (size_t)written;
    }
}

typedef struct stranger {
    int file;
    sluice_mover_ticket in[POSTED], out;
} stranger;

static void a_round(uint64_t peers, uint64_t ends[64])
{
    static unsigned char bytes[2 * ROOM], to[AT_ONCE][POSTED][2000], from[100000];
    sluice_mover_options options = {.size = sizeof options, .max_fragment_bytes = 4096,
                                    .early_bytes = (AT_ONCE + 1) * WINDOW,
                                    .max_peers = AT_ONCE + 1};
    sluice_mover_statistics counted = {.size = sizeof counted};
    static stranger strangers[AT_ONCE];
    sluice_mover *mover, *honest;
    sluice_mover_ticket in, out;
    uint32_t peer;
    int files[2];
    static unsigned char whole[100000];
    OK(sluice_mover_open(&mover, &options));
    OK(sluice_mover_open(&honest, &options));
    pair_of(files, 0);
    OK(sluice_mover_add_peer(mover, files[0], &peer));
    OK(sluice_mover_add_peer(honest, files[1], &peer));
    fill(from, sizeof from, 1);
    OK(sluice_mover_receive(mover, 0, 1, whole, sizeof whole, NULL, &in));
    OK(sluice_mover_send(honest, 0, 1, from, sizeof from, NULL, &out));
    for (uint64_t i = 0; i < peers; i++) {
        pair_of(files, 0);
        OK(sluice_mover_add_peer(mover, files[0], &peer));
        strangers[i].file = files[1];
        for (uint32_t j = 0; j < POSTED; j++)
            OK(sluice_mover_receive(mover, peer, j, to[i][j], sizeof to[i][j], NULL,
                                    &strangers[i].in[j]));
        OK(sluice_mover_send(mover, peer, 1, from, 10000, NULL, &strangers[i].out));
        write_all(files[1], bytes, hostile(bytes));
        shutdown(files[1], SHUT_WR);
    }
    for (uint64_t i = 0; i < peers; i++) {
        for (int j = 0; j <= POSTED; j++) {
            const sluice_mover_ticket ticket = j < POSTED ? strangers[i].in[j] : strangers[i].out;
            int code;
            do {
                code = sluice_mover_wait(mover, ticket, -1, NULL);
            } while (code == SLUICE_MOVER_E_STALLED);
            CHECK(code == SLUICE_MOVER_OK || code == SLUICE_MOVER_E_PEER ||
                  code == SLUICE_MOVER_E_PROTOCOL || code == SLUICE_MOVER_E_TRUNCATED ||
                  code == SLUICE_MOVER_E_CANCELLED);
            ends[-code]++;
        }
        close(strangers[i].file);
    }
    OK(sluice_mover_wait(honest, out, -1, NULL));
    OK(sluice_mover_wait(mover, in, -1, NULL));
    CHECK(is_filled(whole, sizeof whole, 1));
    OK(sluice_mover_get_statistics(mover, &counted));
    CHECK(counted.max_early_bytes <= options.early_bytes);
    OK(sluice_mover_close(honest, SLUICE_MOVER_ABORT, 0));
    OK(sluice_mover_close(mover, SLUICE_MOVER_ABORT, 0));
}

int main(int count, char **words)
{
    uint64_t peers, ends[64] = {0};
    CHECK(count == 3);
    peers = strtoull(words[1], NULL, 10);
    state = strtoull(words[2], NULL, 10);
    for (uint64_t done = 0; done < peers; done += AT_ONCE)
        a_round(peers - done < AT_ONCE ? peers - done : AT_ONCE, ends);
    printf("hostile: %" PRIu64 " peers", peers);
    for (int code = 0; code < 64; code++)
        if (ends[code] > 0)
            printf("; %s: %" PRIu64, sluice_mover_error_text(-code), ends[code]);
    printf("\n");
    return 0;
}
