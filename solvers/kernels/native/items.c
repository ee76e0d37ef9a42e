#include "items.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "items_cost.h"

/* Source    docs/theory.md, "Items".
   Notation  m items; (i, j]: the fragment of items i+1 .. j; f(j): when the stage has done items
             1 .. j at the soonest; C(j): what it spends on them without overheads; g: its overhead;
             r(j): when items 1 .. j can enter it; M(j): what stages between spend on them.
   Cost      a row O(m): both ends of the queue only advance; of a stage with ranges O(m) for each.
   Exact     the operations of solvers/kernels/items.py in its order: the same bits.
   Traps     f may be infinite where so few fragments are not admitted; it never falls with j. */

/* ---- latency ----------------------------------------------------------------------------------- */

/* How many fragments of this cut each window holds; 0 where its greatest one does not fit. */
static int places_of(const sluice_items *of, int64_t count, const int64_t *ends, int64_t *places)
{
    int64_t largest = 1;
    for (int64_t q = 0, i = 0; q < count; i = ends[q++]) {
        int64_t size = of->bytes[ends[q]] - of->bytes[i];
        largest = size > largest ? size : largest;
    }
    for (int64_t w = 0; w < of->windows; w++) {
        int64_t held = of->window_bytes[w] ? of->window_bytes[w] / largest : count;
        int64_t given = of->window_places[w];
        places[w] = given && given < held ? given : held;
        if (!held)
            return 0;
    }
    return 1;
}

double sluice_items_latency(const sluice_items *of, int64_t count, const int64_t *ends,
                            double most_us)
{
    double free_at[SLUICE_ITEMS_MAX_STAGES] = {0.0};
    int64_t places[SLUICE_ITEMS_MAX_WINDOWS];
    const int64_t n = of->stages, windows = of->windows, m = of->items;
    if (windows && !places_of(of, count, ends, places))
        return INFINITY;
    for (int64_t q = 0, i = 0; q < count; i = ends[q++]) {
        double ready = of->ready_us[ends[q]];
        for (int64_t s = 0; s < n; s++) {
            double start = ready > free_at[s] ? ready : free_at[s];
            for (int64_t w = 0; w < windows; w++)
                if (of->window_first[w] == s && q >= places[w]) {
                    double back = of->room[w * m + q - places[w]];
                    start = back > start ? back : start;
                }
            ready = free_at[s] = start + item_cost(of, s, i, ends[q]);
        }
        for (int64_t w = 0; w < windows; w++)
            of->room[w * m + q] = free_at[of->window_last[w]] + of->window_return[w];
        if (ready > most_us)
            break;
    }
    return free_at[n - 1];
}

/* ---- rows of a dynamic program ----------------------------------------------------------------- */

typedef struct {
    int64_t items;
    double overhead;
    const double *spent;      /* C */
    const double *middle;     /* M, NULL for none */
    const int64_t *earliest;  /* NULL: no limit */
    int64_t empty;            /* 1: fragments may be empty */
    int64_t *queue;           /* (m+1) */
} row_of;

static double middle_of(const row_of *row, int64_t i) { return row->middle ? row->middle[i] : 0.0; }

/* out(j) = min over admitted i of max(f(i) + M(j) - M(i), r(j)) + g + C(j) - C(i), and the i.
   `entry` (m+1) holds r(j). f may be `out` itself where fragments are not empty. */
static void next_row(const row_of *row, const double *f, const double *entry, double *out,
                     int64_t *from)
{
    int64_t head = 0, tail = 0, p = -1, *queue = row->queue;
    const double *spent = row->spent;
    for (int64_t j = row->empty ? 0 : 1; j <= row->items; j++) {
        const int64_t last = row->empty ? j : j - 1;
        const int64_t low = row->earliest && j ? row->earliest[j] : 0;
        const double key = f[last] - spent[last];
        while (tail > head && f[queue[tail - 1]] - spent[queue[tail - 1]] >= key)
            tail--;
        queue[tail++] = last;
        while (p + 1 <= last && f[p + 1] + middle_of(row, p + 1) <= entry[j])
            p++;
        while (head < tail && (queue[head] <= p || queue[head] < low))
            head++;
        double best = INFINITY;
        int64_t here = -1;
        if (p >= low) {
            best = entry[j] - middle_of(row, p) - spent[p];
            here = p;
        }
        if (head < tail && f[queue[head]] - spent[queue[head]] < best) {
            here = queue[head];
            best = f[here] - spent[here];
        }
        out[j] = best + row->overhead + spent[j];
        if (from)
            from[j] = here;
    }
}

/* ---- the same of one stage with several ranges, which takes no less for an item more ------------ */

typedef struct {
    int64_t items, ranges;
    const double *end, *overhead, *cost; /* (ranges) */
    const int64_t *bytes;                /* (m+1) */
    const double *own;                   /* (m+1) what items take besides */
    const int64_t *earliest;             /* (m+1) */
    int64_t *head, *tail;                /* (ranges) of the queues */
    int64_t *high, *low; /* (ranges) ends from low to high are so far away as the range says */
    int32_t *queue;      /* (ranges, m+1) */
} ranged_rows;

static int ranged_open(ranged_rows *rows, const sluice_items *of, int64_t stage)
{
    const int64_t ranges = of->ranges[stage], first = of->first_range[stage];
    const size_t room = (size_t)of->items + 1;
    *rows = (ranged_rows){of->items, ranges, of->end_bytes + first, of->range_overhead + first,
                          of->range_cost + first, of->bytes, of->spent_us + (size_t)stage * room,
                          of->earliest, NULL, NULL, NULL, NULL, NULL};
    if (ranges == 1)
        return 0; /* `next_row` needs none of these */
    rows->head = malloc(4 * (size_t)ranges * sizeof *rows->head);
    rows->queue = malloc(room * (size_t)ranges * sizeof *rows->queue);
    if (!rows->head || !rows->queue)
        return -1;
    rows->tail = rows->head + ranges, rows->high = rows->tail + ranges;
    rows->low = rows->high + ranges;
    return 0;
}

static void ranged_close(ranged_rows *rows) { free(rows->head), free(rows->queue); }

/* What the first u items take by the line of a range, without its overhead. */
INLINE double by_line(const ranged_rows *rows, int64_t range, int64_t u)
{
    return rows->cost[range] * (double)rows->bytes[u] / 1000.0 + rows->own[u];
}

/* The ends from which a fragment up to j has a size of this range; queued by rising f - C. */
static void ranged_window(ranged_rows *rows, int64_t range, const double *f, int64_t j, int64_t p)
{
    int32_t *queue = rows->queue + (size_t)range * ((size_t)rows->items + 1);
    const double above = range ? rows->end[range - 1] : 0.0;
    const int64_t last = rows->ranges - 1;
    int64_t head = rows->head[range], tail = rows->tail[range];
    int64_t high = rows->high[range], low = rows->low[range];
    while (high + 1 < j && (double)(rows->bytes[j] - rows->bytes[high + 1]) > above) {
        high++;
        const double key = f[high] - by_line(rows, range, high);
        while (tail > head && f[queue[tail - 1]] - by_line(rows, range, queue[tail - 1]) >= key)
            tail--;
        queue[tail++] = (int32_t)high;
    }
    while (range < last && low < j &&
           (double)(rows->bytes[j] - rows->bytes[low]) > rows->end[range])
        low++;
    low = low > rows->earliest[j] ? low : rows->earliest[j];
    while (head < tail && (queue[head] <= p || queue[head] < low))
        head++;
    rows->head[range] = head, rows->tail[range] = tail;
    rows->high[range] = high, rows->low[range] = low;
}

/* As `next_row`, of fragments that are not empty. */
static void next_ranged_row(ranged_rows *rows, const double *f, const double *entry, double *out,
                            int64_t *from)
{
    for (int64_t r = 0; r < rows->ranges; r++)
        rows->head[r] = rows->tail[r] = rows->low[r] = 0, rows->high[r] = -1;
    for (int64_t j = 1, p = -1; j <= rows->items; j++) {
        while (p + 1 < j && f[p + 1] <= entry[j])
            p++;
        double best = INFINITY;
        int64_t here = -1;
        for (int64_t r = 0; r < rows->ranges; r++) {
            if (r && (double)rows->bytes[j] <= rows->end[r - 1])
                break; /* no fragment is so large yet */
            ranged_window(rows, r, f, j, p);
            const double after = rows->overhead[r] + by_line(rows, r, j);
            const int64_t at_once = p < rows->high[r] ? p : rows->high[r];
            if (at_once >= rows->low[r]) {
                const double done = entry[j] - by_line(rows, r, at_once) + after;
                if (done < best)
                    best = done, here = at_once;
            }
            if (rows->head[r] < rows->tail[r]) {
                const int64_t i = rows->queue[(size_t)r * ((size_t)rows->items + 1) +
                                              (size_t)rows->head[r]];
                const double done = f[i] - by_line(rows, r, i) + after;
                if (done < best)
                    best = done, here = i;
            }
        }
        out[j] = best;
        from[j] = here;
    }
}

static int64_t turned(int64_t count, int64_t *ends)
{
    for (int64_t a = 0; a < count / 2; a++) {
        int64_t end = ends[a];
        ends[a] = ends[count - 1 - a];
        ends[count - 1 - a] = end;
    }
    return count;
}

int64_t sluice_items_one_stage(const sluice_items *of, int64_t *ends)
{
    const size_t room = (size_t)of->items + 1;
    double *f = malloc(room * sizeof *f);
    int64_t *queue = malloc(2 * room * sizeof *queue), *from = queue + room, count = -1;
    ranged_rows ranged;
    if (ranged_open(&ranged, of, 0) == 0 && f && queue) {
        row_of row = {of->items, of->overhead_us[0], of->spent_us, NULL, of->earliest, 0, queue};
        f[0] = 0.0;
        if (ranged.ranges > 1)
            next_ranged_row(&ranged, f, of->ready_us, f, from);
        else
            next_row(&row, f, of->ready_us, f, from);
        count = 0;
        for (int64_t j = of->items; j > 0; j = from[j])
            ends[count++] = j;
        turned(count, ends);
    }
    ranged_close(&ranged);
    free(f), free(queue);
    return count;
}

/* Rows of 0 .. most fragments; with `front` the k-th row's entries are k g + C of that stage. */
static int64_t counted_rows(const sluice_items *of, int64_t most, int64_t stage, int64_t *ends)
{
    const size_t room = (size_t)of->items + 1;
    const int64_t m = of->items, has_front = stage > 0;
    double *rows = malloc(3 * room * sizeof *rows);
    int64_t *queue = malloc(room * sizeof *queue), count = -1, best_count = 0;
    int32_t *from = malloc(room * (size_t)most * sizeof *from);
    int64_t *here = malloc(room * sizeof *here);
    ranged_rows ranged;
    if (ranged_open(&ranged, of, stage) || !rows || !queue || !from || !here)
        goto done;
    double *f = rows, *out = rows + room, *entry = rows + 2 * room, best = INFINITY;
    row_of row = {m, of->overhead_us[stage], of->spent_us + (size_t)stage * room, NULL,
                  of->earliest, has_front, queue};
    for (int64_t j = 0; j <= m; j++) {
        f[j] = j ? INFINITY : 0.0;
        entry[j] = of->ready_us[j];
    }
    for (int64_t k = 1; k <= most; k++) {
        int32_t *into = from + room * (size_t)(k - 1);
        for (int64_t j = 0; has_front && j <= m; j++)
            entry[j] = (double)k * of->overhead_us[0] + of->spent_us[j];
        if (ranged.ranges > 1)
            next_ranged_row(&ranged, f, entry, out, here);
        else
            next_row(&row, f, entry, out, here);
        if (!has_front)
            out[0] = 0.0, here[0] = -1;
        for (int64_t j = 0; j <= m; j++) {
            into[j] = (int32_t)here[j];
            if (!has_front && f[j] <= out[j]) /* as good with fewer */
                out[j] = f[j], into[j] = -1;
        }
        double *spare = f;
        f = out, out = spare;
        if (f[m] < best)
            best = f[m], best_count = k;
    }
    count = -2;
    if (best < INFINITY) {
        count = 0;
        for (int64_t j = m, k = best_count; k > 0; k--) {
            int64_t i = from[room * (size_t)(k - 1) + (size_t)j];
            if (i >= 0 && i < j) /* neither empty nor as good with fewer */
                ends[count++] = j;
            j = i >= 0 ? i : j;
        }
        turned(count, ends);
    }
done:
    ranged_close(&ranged);
    free(rows), free(queue), free(from), free(here);
    return count;
}

int64_t sluice_items_few(const sluice_items *of, int64_t most, int64_t *ends)
{
    return counted_rows(of, most, 0, ends);
}

int64_t sluice_items_two_stages(const sluice_items *of, int64_t most, int64_t *ends)
{
    return counted_rows(of, most, 1, ends);
}

/* ---- two stages and all between: a bound on what follows --------------------------------------- */

int sluice_items_pair(const sluice_item_pair *of, double *rest_us)
{
    const int64_t m = of->items;
    const size_t room = (size_t)m + 1;
    double *all = malloc(6 * room * sizeof *all);
    int64_t *queue = malloc(room * sizeof *queue);
    int status = all && queue ? 0 : -1;
    if (status == 0) {
        double *f = all, *out = all + room, *entry = all + 2 * room, *turned_us[3];
        for (int64_t part = 0; part < 3; part++) { /* the first u items of the reversed sequence */
            turned_us[part] = all + (3 + (size_t)part) * room;
            for (int64_t u = 0; u <= m; u++)
                turned_us[part][u] = of->spent_us[part][m] - of->spent_us[part][m - u];
        }
        row_of row = {m, of->overhead_us[0], turned_us[0], turned_us[1], NULL, 1, queue};
        for (int64_t j = 0; j <= m; j++) {
            f[j] = j ? INFINITY : 0.0;
            rest_us[j] = INFINITY;
        }
        for (int64_t k = 1; k <= of->most; k++) {
            double overheads = (double)k * of->overhead_us[2] + of->overhead_us[1];
            for (int64_t j = 0; j <= m; j++)
                entry[j] = overheads + turned_us[2][j] + turned_us[1][j];
            next_row(&row, f, entry, out, NULL);
            double *spare = f;
            f = out, out = spare;
            for (int64_t j = 1; j <= m; j++)
                if (f[j] < rest_us[m - j])
                    rest_us[m - j] = f[j];
        }
        rest_us[m] = 0.0;
    }
    free(all), free(queue);
    return status;
}

/* ---- the layouts of a cap ---------------------------------------------------------------------- */

#define SAME 1e-12 /* latencies that differ by less, relative, are equal: fewer fragments win */

/* The end of the fragment behind `first` that a program fills by this rule up to this cap; it is
   not below `known`. By steps that double: layouts change little from cap to cap. */
static int64_t filled(const sluice_items *of, int64_t is_before, int64_t first, int64_t cap,
                      int64_t known)
{
    const int64_t *bytes = of->bytes, m = of->items;
    const int64_t size = bytes[first] + cap + is_before; /* the first end with so much is searched */
    int64_t low = known > first + 1 ? known : first + 1, high = low, step = 1;
    while (high <= m && bytes[high] < size) {
        low = high + 1;
        high += step;
        step *= 2;
    }
    high = high <= m ? high : m + 1;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (bytes[middle] < size)
            low = middle + 1;
        else
            high = middle;
    }
    if (is_before)
        return low - 1 > first ? low - 1 : first + 1;
    return low < m ? low : m;
}

static void walk_on(const sluice_items *of, sluice_item_caps *walk, sluice_item_layouts *listed,
                    int64_t count, const int64_t *ends, int64_t is_admitted)
{
    int64_t cap = walk->next_cap, next = 0;
    for (int64_t q = walk->first_bytes > 0 ? 1 : 0; q < count - 1; q++) { /* the last stays */
        int64_t first = of->bytes[q ? ends[q - 1] : 0];
        int64_t at = walk->is_before ? of->bytes[ends[q] + 1] - first : of->bytes[ends[q]] - first + 1;
        if (!next || at < next)
            next = at;
    }
    walk->layouts++;
    walk->next_cap = next && next <= walk->last_cap ? next : 0;
    is_admitted &= count <= of->max_fragments;
    double best = walk->latency_us, most = best * (1.0 + SAME), latency = INFINITY;
    if (is_admitted)
        latency = sluice_items_latency(of, count, ends, listed ? INFINITY : most);
    if (listed) {
        listed->from_bytes[listed->count] = cap;
        listed->fragments[listed->count] = count;
        listed->latency_us[listed->count++] = latency;
    }
    if (!is_admitted)
        return;
    if (latency > most || (latency >= best * (1.0 - SAME) && count >= walk->fragments))
        return;
    walk->latency_us = latency;
    walk->fragments = count;
    walk->from_bytes = cap;
    walk->to_bytes = next ? next - 1 : 0;
}

/* Fills `ends`, where those of a cap that is no greater are known, or zeros; returns their number. */
static int64_t laid_out(const sluice_items *of, int64_t is_before, int64_t first_bytes, int64_t cap,
                        int64_t *ends)
{
    int64_t count = 0;
    for (int64_t first = 0; first < of->items; first = ends[count++]) {
        int64_t own = !first && first_bytes ? first_bytes : cap;
        ends[count] = filled(of, is_before, first, own, ends[count]);
    }
    return count;
}

int sluice_items_caps(const sluice_items *of, sluice_item_caps *walk, int64_t work,
                      sluice_item_layouts *listed)
{
    int64_t *ends = calloc((size_t)of->items, sizeof *ends);
    if (!ends)
        return -1;
    while (walk->next_cap && work > 0 && (!listed || listed->count < listed->room)) {
        int64_t is_admitted = 1;
        int64_t count = laid_out(of, walk->is_before, walk->first_bytes, walk->next_cap, ends);
        for (int64_t q = 0, first = 0; q < count; first = ends[q++])
            is_admitted &= of->earliest[ends[q]] <= first;
        work -= count;
        walk_on(of, walk, listed, count, ends, is_admitted);
    }
    free(ends);
    return 0;
}

int sluice_items_laid_out(const sluice_items *of, int64_t is_before, int64_t first_bytes,
                          int64_t count, const int64_t *caps, int64_t *ends)
{
    int64_t *here = malloc((size_t)of->items * sizeof *here);
    if (!here)
        return -1;
    for (int64_t c = 0; c < count; c++) {
        memset(here, 0, (size_t)of->items * sizeof *here);
        int64_t fragments = laid_out(of, is_before, first_bytes, caps[c], here);
        memcpy(ends, here, (size_t)fragments * sizeof *here);
        ends += fragments;
    }
    free(here);
    return 0;
}
