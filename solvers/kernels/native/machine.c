#include "machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "portable.h"

/* Source    docs/theory.md, "Machines"; domain/machine.py.
   Notation  (i, v): fragment i in node v; s, e: its start and end; (a, z, b, r): a window of b
             places from node a to node z that come back after r; L: lag; o_v: offset of a node.
   Cost      of a cut one pass over its cells for each choice of lags, a maximum for each window
             that could bind; of equal fragments without processors the formula, whatever k.
             Memory for the ends that are still waited for: as many rows of a node as the widest
             window that ends there has places.
             Equal fragments in draws, and very many, go on by whole rounds once every end has
             repeated.
   Exact     the operations of the evaluator in Python: the same bits; the formula and the rounds
             to rounding.
   Traps     a draw whose shared part is 0 has no node of it: what is left there of the node must
             not keep fragments in order. Lags from k - 1 on are all the same. */

enum { NODES = SLUICE_MACHINE_MAX_NODES, WINDOWS = SLUICE_MACHINE_MAX_WINDOWS };
enum { PROCESSORS = SLUICE_MACHINE_MAX_PROCESSORS, LANES = 8 };
/* Rounds of so many fragments at most are looked for, in draws and in cuts of so many, where these
   are so many rounds. */
enum { MOST_PERIOD = 256, MANY = 2048, PERIODS = 8 };

static const double SAME_PACE = 1e-9, SAME_ROUND = 1e-13; /* relative */

static const int64_t MOST_NUMBERS = INT64_C(1) << 40; /* more are memory that nobody has */

/* Fragments: those given, or `full` of a size and behind them, if there is one more, a rest. */
typedef struct {
    int64_t count, full;
    const double *sizes;
    double size, rest;
} fragments;

/* A start waits for the end of the fragment `behind` before it in node `from`. */
typedef struct {
    int64_t behind, from, window;
} wait;

/* How a cut passes, at given lags. */
typedef struct {
    int64_t places[WINDOWS];
    wait waits[WINDOWS];         /* those that could bind, node by node */
    int64_t first[NODES + 1];    /* of them */
    int64_t offset[NODES], most; /* and the greatest of them */
    int64_t mask[NODES], row[NODES], rows; /* rings of ends: length - 1, where they begin, all */
    int64_t lags[PROCESSORS];
    int64_t period; /* fragments of a round, 0 where rounds are not looked for */
} passage;

/* When rounds are looked at: the step whose ends are kept, and the next one, -1 for none. */
typedef struct {
    int64_t step, next;
} rounds;

typedef struct {
    const sluice_machine *m;
    const sluice_draws *costs;
    double shared[NODES * LANES]; /* of a block of draws: ns a byte */
    double back[WINDOWS * LANES]; /* when a place comes back, us; before all for no window */
    double t[NODES * LANES];      /* of the size at hand of each node */
    double size[NODES];
    double *ends, *before; /* now, and a round ago */
    int64_t room, before_room; /* of them, numbers */
    passage p;
    rounds r;
    int64_t best[PROCESSORS]; /* lags of the cut before in draws */
} evaluation;

static double size_at(const fragments *x, int64_t i)
{
    return x->sizes ? x->sizes[i] : i < x->full ? x->size : x->rest;
}

static double greatest(const fragments *x)
{
    double found = 0.0;
    if (!x->sizes)
        return x->full && (x->full == x->count || x->size > x->rest) ? x->size : x->rest;
    for (int64_t i = 0; i < x->count; i++)
        found = x->sizes[i] > found ? x->sizes[i] : found;
    return found;
}

static evaluation *opened(const sluice_machine *m, const sluice_draws *costs)
{
    if (m->nodes < 1 || m->nodes > NODES || m->windows < 0 || m->windows > WINDOWS ||
        m->processors < 0 || m->processors > PROCESSORS)
        return NULL;
    evaluation *e = calloc(1, sizeof *e);
    if (e) {
        e->m = m;
        e->costs = costs;
    }
    return e;
}

static int closed(evaluation *e, int status)
{
    free(e->ends);
    free(e->before);
    free(e);
    return status;
}

/* ---- places and lags ---------------------------------------------------------------------------- */

/* As `//` of Python: the whole number below the quotient as it is, and not as it is rounded. */
static double whole_quotient(double number, double by)
{
    double quotient = (number - fmod(number, by)) / by, whole = floor(quotient);
    return quotient - whole > 0.5 ? whole + 1.0 : whole;
}

/* Of each window for cuts of this greatest size; whether it fits all. */
static int find_places(const sluice_machine *m, double size, int64_t *places)
{
    for (int64_t w = 0; w < m->windows; w++) {
        const int64_t *bounds = m->bounds + 4 * w;
        places[w] = bounds[2] ? bounds[2] : INT64_MAX;
        if (bounds[3]) {
            double held = whole_quotient((double)bounds[3], size);
            if (held < (double)places[w])
                places[w] = (int64_t)held;
        }
        if (places[w] < 1)
            return 0;
    }
    return 1;
}

/* o_node >= o_other + by; whether that raised it. */
static int raised(int64_t *offset, int64_t node, int64_t other, int64_t by)
{
    if (offset[node] >= offset[other] + by)
        return 0;
    offset[node] = offset[other] + by;
    return 1;
}

/* The least offsets by which an order of evaluation follows; 0 where these lags deadlock. */
static int find_offsets(const sluice_machine *m, const int64_t *places, const int64_t *lags,
                        int64_t *offset)
{
    int has_lag = 0;
    for (int64_t v = 0; v < m->nodes; v++)
        offset[v] = 0;
    for (int64_t c = 0; c < m->processors; c++)
        has_lag |= lags[c] > 0;
    if (!has_lag)
        return 1;
    for (int64_t round = 0; round <= m->nodes; round++) {
        int has_changed = 0;
        for (int64_t v = 1; v < m->nodes; v++)
            has_changed |= raised(offset, v, v - 1, 0);
        for (int64_t c = 0; c < m->processors; c++) {
            has_changed |= raised(offset, m->pairs[2 * c + 1], m->pairs[2 * c], lags[c]);
            has_changed |= raised(offset, m->pairs[2 * c], m->pairs[2 * c + 1], -lags[c]);
        }
        for (int64_t w = 0; w < m->windows; w++)
            has_changed |= raised(offset, m->bounds[4 * w], m->bounds[4 * w + 1], 1 - places[w]);
        if (!has_changed)
            return 1;
    }
    return 0;
}

/* Room for so many numbers, whose values are lost where there was less; -1 without memory. */
static int reserve(double **numbers, int64_t *room, int64_t wanted)
{
    if (wanted <= *room)
        return 0;
    free(*numbers);
    *numbers = malloc((size_t)wanted * sizeof **numbers);
    *room = *numbers ? wanted : 0;
    return *numbers ? 0 : -1;
}

/* What binds, and rings of ends that hold what is still waited for; -1 without memory. */
static int lay_out(evaluation *e, int64_t count, int64_t lanes)
{
    const sluice_machine *m = e->m;
    passage *p = &e->p;
    int64_t depth[NODES], waits = 0;
    p->most = p->rows = 0;
    for (int64_t v = 0; v < m->nodes; v++) {
        p->most = p->offset[v] > p->most ? p->offset[v] : p->most;
        depth[v] = v + 1 < m->nodes ? 1 + p->offset[v + 1] - p->offset[v] : 1;
    }
    for (int64_t v = 0; v < m->nodes; v++) {
        p->first[v] = waits;
        for (int64_t w = 0; w < m->windows; w++) {
            const int64_t from = m->bounds[4 * w + 1], b = p->places[w];
            if (m->bounds[4 * w] != v || b >= count)
                continue;
            const int64_t rows = b - (p->offset[from] - p->offset[v]);
            depth[from] = rows > depth[from] ? rows : depth[from];
            p->waits[waits++] = (wait){b, from, w};
        }
    }
    p->first[m->nodes] = waits;
    for (int64_t v = 0; v < m->nodes; v++) {
        int64_t length = 1;
        while (length < depth[v] || length < p->period)
            length *= 2;
        p->mask[v] = length - 1;
        p->row[v] = p->rows;
        p->rows += length;
        if (p->rows > MOST_NUMBERS / lanes)
            return -1;
    }
    if (reserve(&e->ends, &e->room, p->rows * lanes))
        return -1;
    return p->period ? reserve(&e->before, &e->before_room, p->rows * lanes) : 0;
}

/* Whether every fragment fits and these lags do not deadlock; the offsets are known then. */
static int is_live(evaluation *e, const fragments *x, const int64_t *lags)
{
    for (int64_t c = 0; c < e->m->processors; c++)
        e->p.lags[c] = lags[c];
    return find_places(e->m, greatest(x), e->p.places) &&
           find_offsets(e->m, e->p.places, e->p.lags, e->p.offset);
}

/* The next lags that do not deadlock and have no equals before them, with their offsets; 0 where
   there are none. Begin with a first lag of -1. */
static int next_lags(evaluation *e, int64_t count)
{
    const sluice_machine *m = e->m;
    passage *p = &e->p;
    int is_first = p->lags[0] < 0;
    if (is_first)
        p->lags[0] = p->lags[1] = 0;
    for (;; is_first = 0) {
        int64_t c = m->processors, clipped[PROCESSORS] = {0}, is_beyond = 0;
        while (!is_first && --c >= 0 && ++p->lags[c] > m->max_lag)
            p->lags[c] = 0;
        if (c < 0)
            return 0;
        for (c = 0; c < m->processors; c++) {
            clipped[c] = p->lags[c] < count ? p->lags[c] : count - 1;
            is_beyond |= clipped[c] < p->lags[c];
        }
        if (is_beyond && find_offsets(m, p->places, clipped, p->offset))
            continue;
        if (find_offsets(m, p->places, p->lags, p->offset))
            return 1;
    }
}

/* ---- the recurrence ----------------------------------------------------------------------------- */

/* What is the same for all cuts in `lanes` draws from `at` on. */
static void open_block(evaluation *e, int64_t at, int lanes)
{
    const sluice_machine *m = e->m;
    const sluice_draws *all = e->costs;
    for (int64_t v = 0; v < m->nodes; v++) {
        const int64_t first = m->stage_of[v] * all->ranges;
        const double *end = all->ends_bytes + m->stage_of[v] * (all->ranges - 1) * all->row + at;
        for (int l = 0; l < lanes; l++) {
            double part = m->shared_ns_per_byte[v];
            for (int64_t r = 0; part > 0.0 && r < all->ranges; r++) {
                if (r && end[(r - 1) * all->row + l] == INFINITY)
                    break;
                const double whole = all->ns_per_byte[(first + r) * all->row + at + l];
                part = whole < part ? whole : part;
            }
            e->shared[v * lanes + l] = part;
        }
    }
    for (int64_t w = 0; w < m->windows; w++) {
        const int64_t v = m->bounds[4 * w];
        const int is_own = v == m->bounds[4 * w + 1] && m->is_shared[v] && m->bounds[4 * w + 2];
        for (int l = 0; l < lanes; l++) {
            const int is_there = !is_own || e->shared[v * lanes + l] > 0.0;
            e->back[w * lanes + l] = is_there ? m->return_us[w] : -INFINITY;
        }
    }
}

/* The place of a size among a stage's ranges, whose ends are `row` apart. */
INLINE int64_t range_of(int64_t ranges, const double *end, int64_t row, double size)
{
    int64_t place = 0;
    while (place < ranges - 1 && size > end[place * row])
        place++;
    return place;
}

INLINE void find_times(evaluation *e, int64_t at, int lanes, int64_t v, double size)
{
    const sluice_draws *all = e->costs;
    const int64_t stage = e->m->stage_of[v], is_shared = e->m->is_shared[v];
    const double *end = all->ends_bytes + stage * (all->ranges - 1) * all->row + at;
    const int64_t first = stage * all->ranges * all->row + at;
    for (int l = 0; l < lanes; l++) {
        const int64_t line = first + l + range_of(all->ranges, end + l, all->row, size) * all->row;
        const double whole = all->overhead_us[line] + all->ns_per_byte[line] * size / 1000.0;
        const double part = e->shared[v * lanes + l] * size / 1000.0, own = whole - part;
        e->t[v * lanes + l] = is_shared ? part : own > 0.0 ? own : 0.0;
    }
    e->size[v] = size;
}

INLINE void wait_for(int lanes, double *restrict start, const double *restrict end,
                     const double *restrict back)
{
    KEEP_LOOP
    for (int l = 0; l < lanes; l++) {
        const double free_at = end[l] + back[l];
        start[l] = free_at > start[l] ? free_at : start[l];
    }
}

/* A fragment in a node. */
INLINE void pass_cell(evaluation *e, int64_t at, int lanes, const fragments *x, int64_t i,
                      int64_t v, double *restrict start)
{
    static const double at_once[LANES] = {0.0};
    const sluice_machine *m = e->m;
    const passage *p = &e->p;
    double *ends = e->ends;
    const double size = size_at(x, i), *t = e->t + v * lanes;
#define END(node, fragment) (ends + (p->row[node] + ((fragment)&p->mask[node])) * lanes)
    if (size != e->size[v])
        find_times(e, at, lanes, v, size);
    KEEP_LOOP
    for (int l = 0; l < lanes; l++)
        start[l] = v ? END(v - 1, i)[l] + m->delay_us[v - 1] : 0.0;
    for (int64_t at_wait = p->first[v]; at_wait < p->first[v + 1]; at_wait++) {
        const wait *one = p->waits + at_wait;
        if (i >= one->behind)
            wait_for(lanes, start, END(one->from, i - one->behind), e->back + one->window * lanes);
    }
    for (int64_t c = 0; c < m->processors; c++) {
        const int64_t first = m->pairs[2 * c], second = m->pairs[2 * c + 1];
        const int64_t ahead = i + p->lags[c] < x->count ? i + p->lags[c] : x->count - 1;
        if (v == second)
            wait_for(lanes, start, END(first, ahead), at_once);
        if (v == first && i > p->lags[c])
            wait_for(lanes, start, END(second, i - 1 - p->lags[c]), at_once);
    }
    double *restrict end = END(v, i);
#undef END
    KEEP_LOOP
    for (int l = 0; l < lanes; l++)
        end[l] = start[l] + t[l];
}

/* ---- rounds of equal fragments -------------------------------------------------------------------

   Where each end of the last `period` rows, and of all that are waited for, is later than the one
   a period before by what is the same for all fragments of its node, and by no more than in the
   nodes that wait for it, so are all ends to come: a start is a greatest of ends, and the one that
   is greatest moves as its node does. */

static int64_t common_multiple(int64_t a, int64_t b)
{
    int64_t divisor = a, rest = b;
    while (rest) {
        const int64_t left = divisor % rest;
        divisor = rest;
        rest = left;
    }
    return a / divisor > MOST_PERIOD / b ? MOST_PERIOD + 1 : a / divisor * b;
}

/* The fragments after which the nodes of one draw, which is open, come round: the least common
   multiple of the places of windows, and turns of processors, that set the pace of their nodes. */
static int64_t period_of_draw(evaluation *e, int64_t count)
{
    const sluice_machine *m = e->m;
    const passage *p = &e->p;
    double sum[NODES + 1] = {0.0}, pace[WINDOWS + 2 * PROCESSORS], most[NODES] = {0.0};
    int64_t first[WINDOWS + 2 * PROCESSORS], last[WINDOWS + 2 * PROCESSORS];
    int64_t b[WINDOWS + 2 * PROCESSORS], bonds = 0, period = 1;
    for (int64_t v = 0; v < m->nodes; v++) /* up to the start of the next node */
        sum[v + 1] = sum[v] + e->t[v] + m->delay_us[v];
    for (int64_t w = 0; w < m->windows; w++)
        if (p->places[w] < count && e->back[w] >= 0.0) {
            first[bonds] = m->bounds[4 * w];
            last[bonds] = m->bounds[4 * w + 1];
            b[bonds] = p->places[w];
            pace[bonds++] = e->back[w];
        }
    for (int64_t c = 0; c < m->processors; c++) {
        first[bonds] = first[bonds + 1] = m->pairs[2 * c];
        last[bonds] = last[bonds + 1] = m->pairs[2 * c + 1];
        b[bonds] = p->lags[c] + 1;
        pace[bonds++] = 0.0;
        b[bonds] = 1;
        pace[bonds] = e->t[m->pairs[2 * c]] + e->t[m->pairs[2 * c + 1]];
        pace[bonds] -= sum[last[bonds] + 1] - m->delay_us[last[bonds]] - sum[first[bonds]];
        bonds++;
    }
    for (int64_t w = 0; w < bonds; w++) {
        pace[w] += sum[last[w] + 1] - m->delay_us[last[w]] - sum[first[w]];
        pace[w] /= (double)b[w];
        most[first[w]] = pace[w] > most[first[w]] ? pace[w] : most[first[w]];
    }
    for (int64_t v = 1; v < m->nodes; v++)
        most[v] = most[v - 1] > most[v] ? most[v - 1] : most[v];
    for (int64_t w = 0; w < bonds && period <= MOST_PERIOD; w++)
        if (pace[w] >= most[last[w]] * (1.0 - SAME_PACE))
            period = common_multiple(period, b[w]);
    return period;
}

/* The same for one draw of each block, since of another pace a block is only not gone through by
   rounds; 0 where the cut is no run of equal fragments that is long enough. */
static int64_t find_period(evaluation *e, const fragments *x)
{
    int64_t period = 1;
    if (x->sizes || x->full < PERIODS)
        return 0;
    for (int64_t at = 0; at < e->costs->draws; at += LANES) {
        open_block(e, at, 1);
        for (int64_t v = 0; v < e->m->nodes; v++)
            find_times(e, at, 1, v, x->size);
        period = common_multiple(period, period_of_draw(e, x->count));
        if (period > MOST_PERIOD || PERIODS * period > x->full)
            return 0;
    }
    return period;
}

/* By what ends are later than a round ago, (nodes, lanes); whether that is how all go on. */
static int has_come_round(const evaluation *e, int lanes, int64_t step, double *later)
{
    const sluice_machine *m = e->m;
    const passage *p = &e->p;
    for (int64_t v = 0; v < m->nodes; v++) {
        const int64_t newest = step - p->offset[v], mask = p->mask[v];
        for (int l = 0; l < lanes; l++) {
            const double now = e->ends[(p->row[v] + (newest & mask)) * lanes + l];
            later[v * lanes + l] =
                now - e->before[(p->row[v] + ((newest - p->period) & mask)) * lanes + l];
        }
        for (int64_t i = newest; i >= newest - mask; i--)
            for (int l = 0; l < lanes; l++) {
                const double now = e->ends[(p->row[v] + (i & mask)) * lanes + l];
                const double ago =
                    e->before[(p->row[v] + ((i - p->period) & mask)) * lanes + l];
                if (!(fabs(now - ago - later[v * lanes + l]) <= SAME_ROUND * now))
                    return 0;
            }
    }
    for (int64_t v = 0; v < m->nodes; v++)
        for (int l = 0; l < lanes; l++) {
            const double own = later[v * lanes + l];
            const int64_t newest = step - p->offset[v];
            const double close =
                SAME_ROUND * e->ends[(p->row[v] + (newest & p->mask[v])) * lanes + l];
            if (v && later[(v - 1) * lanes + l] > own + close)
                return 0;
            for (int64_t at = p->first[v]; at < p->first[v + 1]; at++) {
                const wait *one = p->waits + at;
                if (e->back[one->window * lanes + l] >= 0.0 &&
                    later[one->from * lanes + l] > own + close)
                    return 0;
            }
            for (int64_t c = 0; c < m->processors; c++) {
                const int64_t first = m->pairs[2 * c], second = m->pairs[2 * c + 1];
                if (v == first && later[second * lanes + l] > own + close)
                    return 0;
            }
        }
    return 1;
}

/* The first step from which on all that fragments may wait for is there. */
static int64_t first_round(const evaluation *e)
{
    int64_t longest = 0;
    for (int64_t v = 0; v < e->m->nodes; v++)
        longest = e->p.mask[v] > longest ? e->p.mask[v] : longest;
    return 2 * e->p.most + longest + e->m->max_lag + 2;
}

/* The step to go on from: this one, or, where its round is as the one before, one so many rounds
   later that all fragments so far are equal ones. */
static int64_t come_round(evaluation *e, int lanes, const fragments *x, int64_t step,
                          double *latest)
{
    const int64_t end = e->m->nodes - 1, period = e->p.period;
    const int64_t many = (x->full - 1 - step) / period;
    double later[NODES * LANES];
    const int is_kept = e->r.step >= 0 && e->r.step == step - period;
    if (many < 1 || (is_kept && !has_come_round(e, lanes, step, later))) {
        e->r.next = many < 1 ? -1 : step + 1 + step / 4; /* the later, the more rarely */
        return step;
    }
    memcpy(e->before, e->ends, (size_t)(e->p.rows * lanes) * sizeof *e->ends);
    e->r = (rounds){step, is_kept ? -1 : step + period};
    if (!is_kept)
        return step;
    for (int64_t v = 0; v <= end; v++) {
        const int64_t newest = step - e->p.offset[v], mask = e->p.mask[v];
        for (int64_t i = newest; i >= newest - mask; i--)
            for (int l = 0; l < lanes; l++) {
                const double moved = e->before[(e->p.row[v] + (i & mask)) * lanes + l] +
                                     (double)many * later[v * lanes + l];
                e->ends[(e->p.row[v] + ((i + many * period) & mask)) * lanes + l] = moved;
                if (v == end && moved > latest[l])
                    latest[l] = moved;
            }
    }
    return step + many * period;
}

/* The latencies of `lanes` draws from `at` on, where they are less than those known. */
INLINE void pass(evaluation *e, int64_t at, int lanes, const fragments *x, double *known)
{
    const int64_t nodes = e->m->nodes;
    double latest[LANES] = {0.0}, start[LANES];
    for (int64_t v = 0; v < nodes; v++)
        e->size[v] = -1.0;
    e->r = (rounds){-1, e->p.period ? first_round(e) : -1};
    for (int64_t step = 0; step < x->count + e->p.most; step++) {
        for (int64_t v = 0; v < nodes; v++) {
            const int64_t i = step - e->p.offset[v];
            if (i < 0 || i >= x->count)
                continue;
            pass_cell(e, at, lanes, x, i, v, start);
            if (v < nodes - 1)
                continue;
            KEEP_LOOP
            for (int l = 0; l < lanes; l++) {
                const double end = start[l] + e->t[v * lanes + l];
                latest[l] = end > latest[l] ? end : latest[l];
            }
        }
        if (step == e->r.next)
            step = come_round(e, lanes, x, step, latest);
    }
    for (int l = 0; l < lanes; l++) {
        const double latency = latest[l] + e->m->delay_us[nodes - 1] + e->costs->delay_us;
        known[l] = latency < known[l] ? latency : known[l];
    }
}

static int is_at_bound(const double *known, const double *below, int64_t first, int64_t last)
{
    for (int64_t d = first; d < last; d++)
        if (known[d] > below[d] * (1.0 + SAME_ROUND))
            return 0;
    return 1;
}

/* The draws that are at their bound, where there is one, are left out. */
CLONES static void pass_draws(evaluation *e, const fragments *x, const double *below,
                              double *known)
{
    const int64_t draws = e->costs->draws, blocks = draws / LANES * LANES;
    for (int64_t at = 0; at < blocks; at += LANES) {
        if (below && is_at_bound(known, below, at, at + LANES))
            continue;
        open_block(e, at, LANES);
        pass(e, at, LANES, x, known + at);
    }
    for (int64_t at = blocks; at < draws; at++) {
        if (below && is_at_bound(known, below, at, at + 1))
            continue;
        open_block(e, at, 1);
        pass(e, at, 1, x, known + at);
    }
}

/* What a message takes in each draw at least, whatever the lags: before a processor's first stage
   passes a fragment, then it does all its work, and behind it passes the last one. */
static void find_bounds(evaluation *e, const fragments *x, double *below)
{
    const sluice_machine *m = e->m;
    const int64_t last = x->count > x->full;
    for (int64_t at = 0; at < e->costs->draws; at++) {
        double full[NODES];
        open_block(e, at, 1);
        for (int64_t v = 0; v < m->nodes; v++) {
            find_times(e, at, 1, v, x->size);
            full[v] = e->t[v];
            if (last)
                find_times(e, at, 1, v, x->rest);
        }
        below[at] = 0.0;
        for (int64_t c = 0; c < m->processors; c++) {
            const int64_t j = m->pairs[2 * c], l = m->pairs[2 * c + 1];
            double least = (double)x->full * (full[j] + full[l]) + e->costs->delay_us;
            if (last)
                least += e->t[j] + e->t[l];
            for (int64_t v = 0; v < m->nodes; v++) {
                least += v < j ? full[v] : v > l ? e->t[v] : 0.0;
                least += v < j || v >= l ? m->delay_us[v] : 0.0;
            }
            below[at] = least > below[at] ? least : below[at];
        }
    }
}

/* Raise these bounds to what it takes without processors, where that is as long in the first draw,
   and so perhaps in all: a processor that does not set the pace. -1 without memory. */
static int raise_bounds(evaluation *e, const fragments *x, const double *known, double *below)
{
    const sluice_machine *m = e->m;
    sluice_machine free_stages = *m;
    double first = INFINITY, *alone = NULL;
    free_stages.processors = 0;
    e->m = &free_stages;
    find_offsets(e->m, e->p.places, e->p.lags, e->p.offset);
    e->p.period = find_period(e, x);
    int status = lay_out(e, x->count, LANES);
    if (!status) {
        open_block(e, 0, 1);
        pass(e, 0, 1, x, &first);
    }
    if (!status && known[0] <= first * (1.0 + SAME_ROUND)) {
        alone = malloc((size_t)e->costs->draws * sizeof *alone);
        status = alone ? 0 : -1;
    }
    if (!status && alone) {
        for (int64_t d = 0; d < e->costs->draws; d++)
            alone[d] = INFINITY;
        pass_draws(e, x, NULL, alone);
        for (int64_t d = 0; d < e->costs->draws; d++)
            below[d] = alone[d] > below[d] ? alone[d] : below[d];
    }
    free(alone);
    e->m = m;
    return status;
}

/* The latencies of a cut at its best lags: in the first draw, which is open. */
static int price(evaluation *e, const fragments *x, double *latency_us)
{
    *latency_us = INFINITY;
    if (!find_places(e->m, greatest(x), e->p.places))
        return 0;
    e->p.lags[0] = -1;
    e->p.period = 0; /* of fragments that are given */
    while (next_lags(e, x->count)) {
        if (x->full >= MANY)
            e->p.period = find_period(e, x);
        if (lay_out(e, x->count, 1))
            return -1;
        pass(e, 0, 1, x, latency_us);
    }
    return 0;
}

/* The draws at these lags, which are live; where the first one takes no longer they are kept. */
static int price_lags(evaluation *e, const fragments *x, const double *below, double *latency_us)
{
    const double known_us = latency_us[0];
    e->p.period = find_period(e, x);
    if (lay_out(e, x->count, LANES))
        return -1;
    pass_draws(e, x, below, latency_us);
    for (int64_t c = 0; latency_us[0] < known_us && c < e->m->processors; c++)
        e->best[c] = e->p.lags[c];
    return 0;
}

/* The same in all draws. `below` has room for a number of each draw. The lags that were the best
   ones of the cut before are tried first. */
static int price_draws(evaluation *e, const fragments *x, double *below, double *latency_us)
{
    const int64_t draws = e->costs->draws;
    const int has_bound = e->m->processors && !x->sizes;
    for (int64_t d = 0; d < draws; d++)
        latency_us[d] = INFINITY;
    if (!find_places(e->m, greatest(x), e->p.places))
        return 0;
    if (has_bound) {
        find_bounds(e, x, below);
        if (is_live(e, x, e->best) && price_lags(e, x, below, latency_us))
            return -1;
        if (!is_at_bound(latency_us, below, 0, draws) && raise_bounds(e, x, latency_us, below))
            return -1;
    }
    e->p.lags[0] = -1;
    while (!(has_bound && is_at_bound(latency_us, below, 0, draws)) && next_lags(e, x->count))
        if (price_lags(e, x, has_bound ? below : NULL, latency_us))
            return -1;
    return 0;
}

int sluice_machine_repeated(const sluice_machine *machine, const sluice_draws *costs, int64_t cuts,
                            const int64_t *q, const int64_t *s, const int64_t *r,
                            double *latency_us)
{
    evaluation *e = opened(machine, costs);
    int status = 0;
    if (!e)
        return -1;
    open_block(e, 0, 1);
    for (int64_t m = 0; m < cuts && !status; m++) {
        const fragments x = {q[m] + (r[m] > 0), q[m], NULL, (double)s[m], (double)r[m]};
        status = price(e, &x, latency_us + m);
    }
    return closed(e, status);
}

int sluice_machine_cut(const sluice_machine *machine, const sluice_draws *costs, int64_t count,
                       const double *sizes, double *latency_us)
{
    const fragments x = {.count = count, .sizes = sizes};
    evaluation *e = opened(machine, costs);
    if (!e)
        return -1;
    open_block(e, 0, 1);
    return closed(e, price(e, &x, latency_us));
}

int sluice_machine_cut_at(const sluice_machine *machine, const sluice_draws *costs, int64_t count,
                          const double *sizes, const int64_t *lags, double *latency_us)
{
    const fragments x = {.count = count, .sizes = sizes};
    evaluation *e = opened(machine, costs);
    int status = 0;
    if (!e)
        return -1;
    open_block(e, 0, 1);
    *latency_us = INFINITY;
    if (is_live(e, &x, lags)) {
        status = lay_out(e, count, 1);
        if (!status)
            pass(e, 0, 1, &x, latency_us);
    }
    return closed(e, status);
}

int sluice_machine_times(const sluice_machine *machine, const sluice_draws *costs, int64_t count,
                         const double *sizes, const int64_t *lags, double *start_us,
                         double *end_us)
{
    const fragments x = {.count = count, .sizes = sizes};
    const int64_t nodes = machine->nodes;
    evaluation *e = opened(machine, costs);
    if (!e)
        return -1;
    open_block(e, 0, 1);
    if (!is_live(e, &x, lags)) {
        for (int64_t at = 0; at < count * nodes; at++)
            start_us[at] = end_us[at] = INFINITY;
        return closed(e, 0);
    }
    if (lay_out(e, count, 1))
        return closed(e, -1);
    for (int64_t v = 0; v < nodes; v++)
        e->size[v] = -1.0;
    for (int64_t step = 0; step < count + e->p.most; step++)
        for (int64_t v = 0; v < nodes; v++) {
            const int64_t i = step - e->p.offset[v];
            if (i < 0 || i >= count)
                continue;
            pass_cell(e, 0, 1, &x, i, v, start_us + i * nodes + v);
            end_us[i * nodes + v] = start_us[i * nodes + v] + e->t[v];
        }
    return closed(e, 0);
}

int sluice_machine_repeated_in_draws(const sluice_machine *machine, const sluice_draws *costs,
                                     int64_t message, int64_t count, const int64_t *sizes,
                                     double *latency_us)
{
    evaluation *e = opened(machine, costs);
    if (!e)
        return -1;
    double *below = malloc((size_t)costs->draws * sizeof *below);
    int status = below ? 0 : -1;
    for (int64_t m = 0; m < count && !status; m++) {
        const int64_t q = message / sizes[m], rest = message - q * sizes[m];
        const fragments x = {q + (rest > 0), q, NULL, (double)sizes[m], (double)rest};
        status = price_draws(e, &x, below, latency_us + m * costs->draws);
    }
    free(below);
    return closed(e, status);
}

int sluice_machine_cut_in_draws(const sluice_machine *machine, const sluice_draws *costs,
                                int64_t count, const double *sizes, double *latency_us)
{
    const fragments x = {.count = count, .sizes = sizes};
    evaluation *e = opened(machine, costs);
    return e ? closed(e, price_draws(e, &x, NULL, latency_us)) : -1;
}

/* ---- equal fragments ---------------------------------------------------------------------------- */

/* A window's round trip, us, and its places. */
typedef struct {
    double trip_us;
    int64_t b;
} trip;

static int by_places(const void *one, const void *other)
{
    const trip *a = one, *c = other;
    if (a->b != c->b)
        return a->b < c->b ? -1 : 1;
    return (a->trip_us < c->trip_us) - (a->trip_us > c->trip_us);
}

/* Those that could be used: of fewer places first, each longer than the one before; how many. */
static int64_t worth_using(evaluation *e, int64_t left, trip *found)
{
    const sluice_machine *m = e->m;
    int64_t usable = 0, kept = 0;
    for (int64_t w = 0; w < m->windows; w++) {
        double trip_us = 0.0;
        for (int64_t v = m->bounds[4 * w]; v <= m->bounds[4 * w + 1]; v++)
            trip_us += e->t[v] + (v < m->bounds[4 * w + 1] ? m->delay_us[v] : 0.0);
        trip_us += m->return_us[w];
        if (e->p.places[w] <= left && trip_us > 0.0)
            found[usable++] = (trip){trip_us, e->p.places[w]};
    }
    qsort(found, (size_t)usable, sizeof *found, by_places);
    for (int64_t w = 0; w < usable; w++)
        if (!kept || found[w].trip_us > found[kept - 1].trip_us)
            found[kept++] = found[w];
    return kept;
}

/* max sum m_w C_w where sum m_w b_w <= left; `sums` is a ring of the best ones of the others. */
static int waited(evaluation *e, int64_t left, double *out)
{
    trip trips[WINDOWS];
    const int64_t usable = worth_using(e, left, trips);
    int64_t best = 0, others = 0, widest = 0, length = 1;
    *out = 0.0;
    if (!usable)
        return 0;
    for (int64_t w = 1; w < usable; w++)
        if (trips[w].trip_us / (double)trips[w].b > trips[best].trip_us / (double)trips[best].b)
            best = w;
    const trip most = trips[best];
    for (int64_t w = 0; w < usable; w++)
        if (w != best)
            trips[others++] = trips[w];
    if (others)
        widest = trips[others - 1].b;
    *out = (double)(left / most.b) * most.trip_us;
    if (!others || most.b == 1)
        return 0;
    const int64_t reach = most.b - 1 > left / widest ? left : (most.b - 1) * widest;
    while (length <= widest)
        length *= 2;
    if (length > MOST_NUMBERS)
        return -1;
    if (reserve(&e->ends, &e->room, length))
        return -1;
    double *sums = e->ends;
    sums[0] = 0.0;
    for (int64_t q = 1; q <= reach; q++) {
        double sum = sums[(q - 1) & (length - 1)];
        for (int64_t w = 0; w < others && trips[w].b <= q; w++) {
            const double used = sums[(q - trips[w].b) & (length - 1)] + trips[w].trip_us;
            sum = used > sum ? used : sum;
        }
        sums[q & (length - 1)] = sum;
        const double found = sum + (double)((left - q) / most.b) * most.trip_us;
        *out = found > *out ? found : *out;
    }
    return 0;
}

static int price_equal(evaluation *e, double x, int64_t k, double *latency_us)
{
    const sluice_machine *m = e->m;
    double through = 0.0, waiting;
    if (m->processors) {
        const fragments all = {k, k, NULL, x, 0.0};
        return price(e, &all, latency_us);
    }
    *latency_us = INFINITY;
    if (!find_places(m, x, e->p.places))
        return 0;
    for (int64_t v = 0; v < m->nodes; v++) {
        find_times(e, 0, 1, v, x);
        through += e->t[v] + m->delay_us[v];
    }
    const int status = waited(e, k - 1, &waiting);
    *latency_us = through + waiting + e->costs->delay_us;
    return status;
}

int sluice_machine_equal(const sluice_machine *machine, const sluice_draws *costs, int64_t cuts,
                         const double *x, const int64_t *k, double *latency_us)
{
    evaluation *e = opened(machine, costs);
    int status = 0;
    if (!e)
        return -1;
    open_block(e, 0, 1);
    for (int64_t m = 0; m < cuts && !status; m++)
        status = price_equal(e, x[m], k[m], latency_us + m);
    return closed(e, status);
}

/* ---- derivatives -------------------------------------------------------------------------------- */

/* When something is over, and a derivative of that. */
typedef struct {
    double us, slope;
} moment;

/* The derivative of a fragment's time in a node by the size of the full ones. */
static double slope_of(const evaluation *e, int64_t v, const fragments *x, int64_t i)
{
    const sluice_draws *all = e->costs;
    const int64_t stage = e->m->stage_of[v];
    const double *end = all->ends_bytes + stage * (all->ranges - 1) * all->row;
    const int64_t place = range_of(all->ranges, end, all->row, size_at(x, i));
    const double whole = all->ns_per_byte[(stage * all->ranges + place) * all->row];
    const double part = e->shared[v], cost = e->m->is_shared[v] ? part : whole - part;
    return cost / 1000.0 * (i < x->full ? 1.0 : -(double)x->full);
}

/* A message in `q` fragments of a size and what is left, if that is above 0. */
static fragments repeated(int64_t message, int64_t q, int64_t s)
{
    const int64_t rest = message - q * s;
    return (fragments){q + (rest > 0), q, NULL, (double)s, (double)rest};
}

/* What a fragment in a node waits for. Of equals a window is taken before a processor and that
   before the route, and of windows the first one: as in the evaluator's critical path. */
static moment start_of(const evaluation *e, const moment *ends, const fragments *x, int64_t i,
                       int64_t v)
{
    const sluice_machine *m = e->m;
    const passage *p = &e->p;
    moment start = {0.0, 0.0}, window = {-1.0, 0.0};
#define END(node, fragment) ends[p->row[node] + ((fragment)&p->mask[node])]
    if (v) {
        start = END(v - 1, i);
        start.us += m->delay_us[v - 1];
    }
    for (int64_t c = 0; c < m->processors; c++) {
        const int64_t first = m->pairs[2 * c], second = m->pairs[2 * c + 1];
        const int64_t ahead = i + p->lags[c] < x->count ? i + p->lags[c] : x->count - 1;
        if (v == second && END(first, ahead).us >= start.us)
            start = END(first, ahead);
        if (v == first && i > p->lags[c] && END(second, i - 1 - p->lags[c]).us >= start.us)
            start = END(second, i - 1 - p->lags[c]);
    }
    for (int64_t at = p->first[v]; at < p->first[v + 1]; at++) {
        const wait *one = p->waits + at;
        if (i < one->behind)
            continue;
        moment back = END(one->from, i - one->behind);
        back.us += e->back[one->window];
        window = back.us > window.us ? back : window;
    }
#undef END
    start = window.us >= start.us ? window : start;
    start.slope = start.us > 0.0 ? start.slope : 0.0;
    return start;
}

/* The latency at these lags, whose offsets are known, and its slope. */
static moment follow(evaluation *e, const fragments *x)
{
    const int64_t nodes = e->m->nodes;
    moment *ends = (moment *)e->ends, latest = {-1.0, 0.0};
    double slope[NODES];
    for (int64_t v = 0; v < nodes; v++)
        e->size[v] = -1.0;
    for (int64_t step = 0; step < x->count + e->p.most; step++)
        for (int64_t v = 0; v < nodes; v++) {
            const int64_t i = step - e->p.offset[v];
            if (i < 0 || i >= x->count)
                continue;
            if (!i || i == x->full) {
                find_times(e, 0, 1, v, size_at(x, i));
                slope[v] = slope_of(e, v, x, i);
            }
            moment end = start_of(e, ends, x, i, v);
            end.us += e->t[v];
            end.slope += slope[v];
            ends[e->p.row[v] + (i & e->p.mask[v])] = end;
            if (v == nodes - 1 && end.us > latest.us)
                latest = end;
        }
    latest.us = latest.us + e->m->delay_us[nodes - 1] + e->costs->delay_us;
    return latest;
}

int sluice_machine_slopes(const sluice_machine *machine, const sluice_draws *costs, int64_t message,
                          const int64_t *lags, int64_t cuts, const int64_t *q, const int64_t *s,
                          double *latency_us, double *slope)
{
    evaluation *e = opened(machine, costs);
    int status = 0;
    if (!e)
        return -1;
    open_block(e, 0, 1);
    for (int64_t m = 0; m < cuts && !status; m++) {
        const fragments x = repeated(message, q[m], s[m]);
        moment found = {INFINITY, 0.0};
        if (is_live(e, &x, lags + m * machine->processors)) {
            status = lay_out(e, x.count, 2);
            if (!status)
                found = follow(e, &x);
        }
        latency_us[m] = found.us;
        slope[m] = found.slope;
    }
    return closed(e, status);
}

/* ---- paths that turn in one window -------------------------------------------------------------- */

/* A way back: from the end of node `last` to the start of node `first`, `b` fragments later. */
typedef struct {
    int64_t first, last, b;
    moment trip, back;
} turn;

typedef struct {
    const evaluation *e;
    int64_t q, turns;
    turn turn[WINDOWS + PROCESSORS];
    moment full[NODES], rest[NODES];             /* times of a full fragment and of the rest */
    moment before[NODES + 1], behind[NODES + 1]; /* full ones up to a node, the rest from it on,
                                                    delays included */
} paths;

static moment sum(moment one, moment other)
{
    return (moment){one.us + other.us, one.slope + other.slope};
}

static moment times(int64_t number, moment one)
{
    return (moment){(double)number * one.us, (double)number * one.slope};
}

static moment longer(moment one, moment other)
{
    return other.us > one.us ? other : one;
}

static void add_turn(paths *p, int64_t first, int64_t last, int64_t b, double back_us)
{
    moment trip = {back_us, 0.0};
    for (int64_t v = first; v <= last; v++) {
        trip = sum(trip, p->full[v]);
        trip.us += v < last ? p->e->m->delay_us[v] : 0.0;
    }
    p->turn[p->turns++] = (turn){first, last, b, trip, {back_us, 0.0}};
}

static void open_paths(paths *p, evaluation *e, const fragments *x)
{
    const sluice_machine *m = e->m;
    p->e = e;
    p->q = x->full;
    p->turns = 0;
    for (int64_t v = 0; v < m->nodes; v++) {
        find_times(e, 0, 1, v, x->size);
        p->full[v] = (moment){e->t[v], slope_of(e, v, x, 0)};
        p->rest[v] = (moment){0.0, 0.0};
        if (x->count == x->full)
            continue;
        find_times(e, 0, 1, v, x->rest);
        p->rest[v] = (moment){e->t[v], slope_of(e, v, x, x->full)};
    }
    p->before[0] = p->behind[m->nodes] = (moment){0.0, 0.0};
    for (int64_t v = 0; v < m->nodes; v++)
        p->before[v + 1] = sum(sum(p->before[v], p->full[v]), (moment){m->delay_us[v], 0.0});
    for (int64_t v = m->nodes - 1; v >= 0; v--)
        p->behind[v] = sum(sum(p->behind[v + 1], p->rest[v]), (moment){m->delay_us[v], 0.0});
    for (int64_t w = 0; w < m->windows; w++)
        if (e->p.places[w] <= p->q && e->back[w] >= 0.0)
            add_turn(p, m->bounds[4 * w], m->bounds[4 * w + 1], e->p.places[w], e->back[w]);
    for (int64_t c = 0; c < m->processors; c++)
        if (e->p.lags[c] < p->q)
            add_turn(p, m->pairs[2 * c], m->pairs[2 * c + 1], e->p.lags[c] + 1, 0.0);
}

/* What turns add to a path that passes the nodes up to `node`, within so many fragments: the one
   of the greatest pace, and of what it leaves another one. */
static moment turned(const paths *p, int64_t node, int64_t left)
{
    const turn *best = NULL;
    moment found = {0.0, 0.0};
    double pace = 0.0;
    for (int64_t w = 0; w < p->turns; w++) {
        const turn *one = p->turn + w;
        if (one->first <= node && one->b <= left && one->trip.us > pace * (double)one->b) {
            best = one;
            pace = one->trip.us / (double)one->b;
        }
    }
    if (!best)
        return found;
    const int64_t uses = left / best->b;
    left -= uses * best->b;
    for (int64_t w = 0; left && w < p->turns; w++)
        if (p->turn[w].first <= node && p->turn[w].b <= left)
            found = longer(found, times(left / p->turn[w].b, p->turn[w].trip));
    return sum(found, times(uses, best->trip));
}

static moment longest_path(const paths *p, int has_rest)
{
    const sluice_machine *m = p->e->m;
    const int64_t last = m->nodes - 1;
    moment found = sum(p->before[m->nodes], turned(p, last, p->q - 1));
    if (has_rest)
        found = longer(found, p->behind[0]);
    for (int64_t w = 0; has_rest && w < p->turns; w++) {
        const turn *one = p->turn + w;
        const moment there = sum(p->before[one->last], p->full[one->last]);
        const moment gone = sum(there, turned(p, one->last, p->q - one->b));
        found = longer(found, sum(sum(gone, one->back), p->behind[one->first]));
    }
    for (int64_t c = 0; c < m->processors; c++) {
        const int64_t j = m->pairs[2 * c], l = m->pairs[2 * c + 1];
        const moment work = sum(times(p->q, sum(p->full[j], p->full[l])),
                                has_rest ? sum(p->rest[j], p->rest[l]) : (moment){0.0, 0.0});
        moment gone = sum(p->before[j], work);
        gone.us += m->delay_us[l];
        if (has_rest)
            gone = sum(gone, p->behind[l + 1]);
        for (int64_t v = l + 1; !has_rest && v <= last; v++) {
            gone = sum(gone, p->full[v]);
            gone.us += m->delay_us[v];
        }
        found = longer(found, gone);
    }
    found.us += p->e->costs->delay_us;
    return found;
}

int sluice_machine_paths(const sluice_machine *machine, const sluice_draws *costs, int64_t message,
                         const int64_t *lags, int64_t cuts, const int64_t *q, const int64_t *s,
                         double *length_us, double *slope)
{
    evaluation *e = opened(machine, costs);
    paths *p = e ? malloc(sizeof *p) : NULL;
    if (!p)
        return e ? closed(e, -1) : -1;
    open_block(e, 0, 1);
    for (int64_t m = 0; m < cuts; m++) {
        const fragments x = repeated(message, q[m], s[m]);
        moment found = {INFINITY, 0.0};
        if (is_live(e, &x, lags + m * machine->processors)) {
            open_paths(p, e, &x);
            found = longest_path(p, x.count > x.full);
        }
        length_us[m] = found.us;
        slope[m] = found.slope;
    }
    free(p);
    return closed(e, 0);
}
