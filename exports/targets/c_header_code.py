"""The functions of a header with a plan table compiled in: C text with $names to fill in.

Derivation: the arithmetic of docs/format.md. Position differences may be negative; a right shift of
a negative number is the implementation's choice in C11, so the magnitude is shifted instead:
floor((-d f + 2^31) / 2^32) = -floor((d f + 2^31 - 1) / 2^32). All products stay below 2^64.
"""

from __future__ import annotations

from string import Template

# $p: the prefix, $P: the same in capitals.
FUNCTIONS = Template("""\
/* 1 where the table has an answer for this message, otherwise 0. */
static inline int ${p}_covers(uint64_t message_bytes)
{
    return message_bytes >= ${P}_MIN_MESSAGE_BYTES &&
           message_bytes <= ${P}_MAX_MESSAGE_BYTES;
}

/* Index of the last entry of the cuts that is not above this message, which is in the range. */
static inline size_t ${p}_cut_at(uint64_t message_bytes)
{
    size_t low = 0, high = ${P}_CUTS;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (${p}_cut_message[middle] <= message_bytes)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The same for the repeated sizes. */
static inline size_t ${p}_repeat_at(uint64_t message_bytes)
{
    size_t low = 0, high = ${P}_REPEATS;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (${p}_repeat_message[middle] <= message_bytes)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The best size to repeat: the message is sent as floor(message_bytes / size) fragments of this
   size and then what is left, if anything; it may exceed the message, which is then sent whole.
   0 outside the range, and where no repeated size keeps the limits. */
static inline uint64_t ${p}_repeat(uint64_t message_bytes)
{
    uint64_t here, after, size, next, share;
    size_t at;
    if (!${p}_covers(message_bytes))
        return 0;
    at = ${p}_repeat_at(message_bytes);
    here = ${p}_repeat_message[at];
    size = ${p}_repeat_size[at];
    if (here == message_bytes || size == 0)
        return size;
    after = ${p}_repeat_message[at + 1];
    next = ${p}_repeat_size[at + 1];
    if (next == 0 || (here - 1) / size != (after - 1) / next)
        return size;
    share = (((message_bytes - here) << 32) + (after - here) - 1) / (after - here);
    next = (next - size) / ${P}_ALIGNMENT_BYTES;
    return size + ${P}_ALIGNMENT_BYTES * ((next * share + 0xFFFFFFFFu) >> 32);
}

/* A schedule that is read one fragment after the other. Its members are not for the caller. */
struct ${p}_cut {
    uint64_t message_bytes, start_bytes, share;
    size_t low, high, left;
};

/* Begin the schedule of this message: the number of its fragments, 0 outside the range. */
static inline size_t ${p}_begin(struct ${p}_cut *cut, uint64_t message_bytes)
{
    uint64_t here;
    size_t at, first, behind;
    cut->message_bytes = message_bytes;
    cut->start_bytes = cut->share = 0;
    cut->low = cut->high = cut->left = 0;
    if (!${p}_covers(message_bytes))
        return 0;
    at = ${p}_cut_at(message_bytes);
    here = ${p}_cut_message[at];
    first = ${p}_cut_first[at];
    behind = ${p}_cut_first[at + 1];
    cut->low = cut->high = first;
    cut->left = behind - first + 1;
    if (here != message_bytes) {
        cut->high = behind;
        cut->share = ((message_bytes - here) << 32) / (${p}_cut_message[at + 1] - here);
    }
    return cut->left;
}

/* A position between two neighbouring ones, in units. */
static inline uint64_t ${p}_between(uint64_t low, uint64_t high, uint64_t share)
{
    if (high >= low)
        return low + (((high - low) * share + 0x80000000u) >> 32);
    return low - (((low - high) * share + 0x7FFFFFFFu) >> 32);
}

/* 1 and the next fragment's size in bytes; 0 at the end, and nothing written. */
static inline int ${p}_next(struct ${p}_cut *cut, uint64_t *fragment_bytes)
{
    uint64_t end_bytes = cut->message_bytes, low, high;
    if (cut->left == 0)
        return 0;
    cut->left -= 1;
    if (cut->left != 0) {
        low = ${p}_position[cut->low++];
        high = ${p}_position[cut->high++];
        end_bytes = ${P}_ALIGNMENT_BYTES * ${p}_between(low, high, cut->share);
    }
    *fragment_bytes = end_bytes - cut->start_bytes;
    cut->start_bytes = end_bytes;
    return 1;
}

/* The whole schedule into an array: returns the number of fragments, 0 outside the range. Where it
   exceeds `capacity`, nothing is written; ${P}_MAX_FRAGMENTS is always enough. */
static inline size_t ${p}_schedule(
    uint64_t message_bytes, uint64_t *fragment_bytes, size_t capacity)
{
    struct ${p}_cut cut;
    size_t fragments = ${p}_begin(&cut, message_bytes);
    if (fragments <= capacity)
        while (${p}_next(&cut, fragment_bytes))
            ++fragment_bytes;
    return fragments;
}
""")
