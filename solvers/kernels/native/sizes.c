#include "sizes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "portable.h"

/* Source    docs/theory.md, "Uncertain costs": which repeated sizes are priced, and which are good.
   Cost      O(sizes x draws x stages), and up to 64 bits of halving for each end of an interval.
   Exact     the operations of the same in NumPy, in its order: the same bits. */

#define AS_FAST 1e-9 /* expected regrets that differ by less are the same but for rounding */

static int is_admitted(const sluice_size_limits *limits, int64_t size)
{
    const int64_t full = limits->message_bytes / size, rest = limits->message_bytes - full * size;
    const int64_t count = full + (rest > 0), smallest = rest > 0 ? rest : size;
    if (size > limits->max_bytes || count > limits->max_count)
        return 0;
    return count == 1 || (size % limits->unit_bytes == 0 && smallest >= limits->min_bytes);
}

static int is_known(const sluice_size_limits *limits, int64_t size)
{
    return size >= limits->message_bytes ||
           (limits->low_bytes <= size && size <= limits->high_bytes);
}

static int ascend(const void *one, const void *other)
{
    const int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
    return (a > b) - (a < b);
}

static int is_among(int64_t count, const int64_t *sizes, int64_t size)
{
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (sizes[middle] < size)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && sizes[low] == size;
}

/* Those of `more` that are admitted, none of them among `sizes`; ascending, once each. */
static int64_t admitted(const sluice_size_limits *limits, int64_t count, const int64_t *sizes,
                        int64_t more_count, int64_t *more)
{
    int64_t found = 0, last = 0;
    int is_sorted = 1;
    for (int64_t s = 0; s < more_count; s++) {
        more[s] = more[s] < limits->message_bytes ? more[s] : limits->message_bytes;
        is_sorted &= s == 0 || more[s - 1] <= more[s];
    }
    if (!is_sorted)
        qsort(more, (size_t)more_count, sizeof *more, ascend);
    for (int64_t s = 0; s < more_count; s++) {
        if (more[s] <= last)
            continue;
        last = more[s];
        if (is_admitted(limits, last) && !is_among(count, sizes, last))
            more[found++] = last;
    }
    return found;
}

/* As NumPy adds up a row of fewer than 128 numbers, or two halves of more. */
static double sum_of(int64_t count, const double *values)
{
    if (count < 8) {
        double sum = -0.0;
        for (int64_t i = 0; i < count; i++)
            sum += values[i];
        return sum;
    }
    if (count > 128) {
        const int64_t half = count / 2 - count / 2 % 8;
        return sum_of(half, values) + sum_of(count - half, values + half);
    }
    double part[8];
    int64_t at = 8;
    memcpy(part, values, sizeof part);
    for (; at < count - count % 8; at += 8)
        for (int64_t l = 0; l < 8; l++)
            part[l] += values[at + l];
    double sum = ((part[0] + part[1]) + (part[2] + part[3])) +
                 ((part[4] + part[5]) + (part[6] + part[7]));
    for (; at < count; at++)
        sum += values[at];
    return sum;
}

/* ---- which are priced -------------------------------------------------------------------------- */

static int64_t tried_sizes(const sluice_size_limits *limits, const sluice_size_grid *grid,
                           int64_t octave_count, const double *octaves, int64_t end_count,
                           const int64_t *ends, int64_t given_count, const int64_t *given,
                           int64_t *sizes)
{
    const int64_t total = limits->message_bytes, unit = limits->unit_bytes;
    int64_t found = 0, count = 0, known = 0, has_known = 0;
    for (int64_t at = 0; at < octave_count; at++)
        sizes[found++] = (int64_t)rint((double)total / octaves[at]);
    for (int64_t at = 0; at < grid->powers; at++) {
        sizes[found++] = (int64_t)1 << at;
        sizes[found++] = (int64_t)3 << at;
    }
    for (int64_t k = 1; k <= grid->divided; k++)
        sizes[found++] = (total + k - 1) / k;
    for (int64_t e = 0; e < end_count; e++) {
        sizes[found++] = ends[e];
        sizes[found++] = ends[e] + 1;
    }
    sizes[found++] = (total + limits->max_count - 1) / limits->max_count;
    for (int64_t s = 0; s < found; s++)
        sizes[s] = (sizes[s] + unit - 1) / unit * unit;
    for (int64_t k = 1; k <= grid->before; k++)
        sizes[found++] = (total - limits->min_bytes) / (k * unit) * unit;
    for (int64_t s = 0; s < found; s++)
        if (grid->smallest_bytes <= sizes[s] && sizes[s] <= total)
            sizes[count++] = sizes[s];
    for (int64_t s = 0; s < given_count; s++)
        sizes[count++] = given[s];
    count = admitted(limits, 0, sizes, count, sizes);
    for (int64_t s = 0; s < count; s++)
        has_known |= sizes[s] < total && is_known(limits, sizes[s]);
    for (int64_t s = 0; s < count; s++)
        if (!has_known || is_known(limits, sizes[s]))
            sizes[known++] = sizes[s];
    return known;
}

/* Marks sizes near the best in some of a few draws, and the best of those below the message. */
static void mark_near(const sluice_draws *few, const sluice_draws_room *use,
                      const sluice_size_limits *limits, double regret, int64_t count,
                      const int64_t *sizes, double *latency_us, double *near_us, char *is_kept)
{
    const int64_t draws = few->draws;
    int64_t best = -1;
    double best_us = 0.0;
    for (int64_t s = 0; s < count; s++) {
        double *row = latency_us + s * draws;
        sluice_draws_price(few, use, limits->message_bytes, sizes[s], row);
        for (int64_t i = 0; i < draws; i++)
            near_us[i] = s == 0 || row[i] < near_us[i] ? row[i] : near_us[i];
        const double sum_us = sum_of(draws, row);
        if (sizes[s] < limits->message_bytes && (best < 0 || sum_us < best_us)) {
            best = s;
            best_us = sum_us;
        }
    }
    for (int64_t i = 0; i < draws; i++)
        near_us[i] *= 1.0 + regret;
    for (int64_t s = 0; s < count; s++)
        for (int64_t i = 0; i < draws; i++)
            is_kept[s] |= latency_us[s * draws + i] <= near_us[i];
    if (best >= 0)
        is_kept[best] = 1;
}

int64_t sluice_near_sizes(const sluice_draws *all, const sluice_size_limits *limits,
                          const sluice_size_search *how, const sluice_size_grid *grid,
                          int64_t octave_count, const double *octaves, int64_t end_count,
                          const int64_t *ends, int64_t given_count, const int64_t *given,
                          int64_t *sizes)
{
    const int64_t tried = tried_sizes(limits, grid, octave_count, octaves, end_count, ends,
                                      given_count, given, sizes);
    sluice_draws few = *all;
    few.draws = how->screened;
    sluice_draws_room use;
    if (!tried)
        return 0;
    if (sluice_draws_open(all, &use))
        return SLUICE_SIZES_NO_MEMORY;
    double *few_us = malloc((size_t)((tried + 1) * few.draws) * sizeof *few_us);
    char *is_kept = calloc((size_t)tried + 1, 1);
    int64_t count = few_us && is_kept ? 0 : SLUICE_SIZES_NO_MEMORY;
    if (count == 0) {
        mark_near(&few, &use, limits, how->regret, tried, sizes, few_us,
                  few_us + tried * few.draws, is_kept);
        for (int64_t s = 0; s < tried; s++)
            if (is_kept[s] || is_among(given_count, given, sizes[s]))
                sizes[count++] = sizes[s];
    }
    free(few_us);
    free(is_kept);
    free(use.t);
    return count;
}

/* The places of the sizes of least mean latency, the best first; of equal ones the first. */
static int64_t leading(int64_t count, int64_t draws, const double *latency_us, int64_t wanted,
                       int64_t *places)
{
    double means[SLUICE_MAX_ROUNDED];
    int64_t found = 0;
    for (int64_t s = 0; s < count; s++) {
        const double mean = sum_of(draws, latency_us + s * draws) / (double)draws;
        int64_t at = found;
        if (at == wanted && !(mean < means[at - 1]))
            continue;
        at -= at == wanted;
        for (; at > 0 && mean < means[at - 1]; at--) {
            means[at] = means[at - 1];
            places[at] = places[at - 1];
        }
        means[at] = mean;
        places[at] = s;
        found += found < wanted;
    }
    return found;
}

/* Evenly spread from `low` to `high`, both included. */
static int64_t spread(int64_t low, int64_t high, int64_t steps, int64_t *more)
{
    const double step = (double)(high - low) / (double)steps;
    for (int64_t at = 0; at <= steps; at++)
        more[at] = (int64_t)((double)low + (double)at * step);
    return steps + 1;
}

static int64_t finer(const sluice_size_limits *limits, const sluice_size_search *how, int64_t draws,
                     int64_t count, const int64_t *sizes, const double *latency_us,
                     int64_t unit_count, const int64_t *units, int64_t *more)
{
    int64_t places[SLUICE_MAX_ROUNDED], found = 0, known = 0;
    const int64_t best = leading(count, draws, latency_us, how->rounded, places);
    for (int64_t u = 0; u < unit_count; u++)
        for (int64_t at = 0; at < best; at++) {
            const int64_t below = sizes[places[at]] / units[u] * units[u];
            more[found++] = below;
            more[found++] = below + units[u];
        }
    const int64_t at = places[0], before = at > 0 ? at - 1 : 0, after = at + (at < count - 1);
    found += spread(sizes[before], sizes[at], how->beside + 1, more + found);
    found += spread(sizes[at], sizes[after], how->beside + 1, more + found);
    for (int64_t s = 0; s < found; s++)
        if (is_known(limits, more[s]))
            more[known++] = more[s];
    return admitted(limits, count, sizes, known, more);
}

int64_t sluice_price_sizes(const sluice_draws *all, const sluice_size_limits *limits,
                           const sluice_size_search *how, int64_t unit_count,
                           const int64_t *units, int64_t count, int64_t *sizes,
                           double *latency_us)
{
    const int64_t draws = all->draws, total = limits->message_bytes;
    const int64_t more_count = 2 * how->rounded * unit_count + 2 * (how->beside + 2);
    sluice_draws_room use;
    if (sluice_draws_open(all, &use))
        return SLUICE_SIZES_NO_MEMORY;
    int64_t *more = malloc((size_t)more_count * sizeof *more);
    if (more) {
        for (int64_t s = 0; s < count; s++)
            sluice_draws_price(all, &use, total, sizes[s], latency_us + s * draws);
        int64_t old = count, left = finer(limits, how, draws, count, sizes, latency_us, unit_count,
                                          units, more);
        count += left;
        for (int64_t to = count - 1; left > 0; to--) { /* from the end, so that rows stay in place */
            const int is_old = old > 0 && sizes[old - 1] > more[left - 1];
            double *row = latency_us + to * draws;
            sizes[to] = is_old ? sizes[--old] : more[--left];
            if (is_old)
                memcpy(row, latency_us + old * draws, (size_t)draws * sizeof *row);
            else
                sluice_draws_price(all, &use, total, sizes[to], row);
        }
    } else {
        count = SLUICE_SIZES_NO_MEMORY;
    }
    free(more);
    free(use.t);
    return count;
}

CLONES static void keep_least(int64_t draws, const double *restrict row, double *restrict best_us)
{
    for (int64_t i = 0; i < draws; i++)
        best_us[i] = row[i] < best_us[i] ? row[i] : best_us[i];
}

CLONES static void regrets_of(int64_t draws, const double *restrict row,
                              const double *restrict best_us, double *restrict regrets)
{
    for (int64_t i = 0; i < draws; i++) {
        const double without = row[i] > 0.0 ? INFINITY : 0.0;
        regrets[i] = best_us[i] > 0.0 ? row[i] / best_us[i] - 1.0 : without;
    }
}

int sluice_summarise(int64_t count, int64_t draws, const double *latency_us, double *best_us,
                     double *mean_us, double *mean_regret)
{
    double *regrets = malloc((size_t)draws * sizeof *regrets);
    if (!regrets)
        return SLUICE_SIZES_NO_MEMORY;
    memcpy(best_us, latency_us, (size_t)draws * sizeof *best_us);
    for (int64_t s = 1; s < count; s++)
        keep_least(draws, latency_us + s * draws, best_us);
    for (int64_t s = 0; s < count; s++) {
        regrets_of(draws, latency_us + s * draws, best_us, regrets);
        mean_us[s] = sum_of(draws, latency_us + s * draws) / (double)draws;
        mean_regret[s] = sum_of(draws, regrets) / (double)draws;
    }
    free(regrets);
    return 0;
}

static int64_t power_in(int64_t size)
{
    return size & -size;
}

static int keeps(int64_t message_bytes, int64_t size, const sluice_round_rule *rule)
{
    return size != message_bytes && size / power_in(size) <= rule->max_odd &&
           size % rule->unit_bytes == 0;
}

void sluice_round_sizes(int64_t message_bytes, int64_t count, const int64_t *sizes,
                        const double *mean_regret, int64_t rule_count,
                        const sluice_round_rule *rules, int64_t *places)
{
    for (int64_t r = 0; r < rule_count; r++) {
        double least = INFINITY;
        int64_t best = -1;
        for (int64_t s = 0; s < count; s++)
            if (keeps(message_bytes, sizes[s], &rules[r]) && mean_regret[s] < least)
                least = mean_regret[s];
        for (int64_t s = 0; s < count; s++)
            if (keeps(message_bytes, sizes[s], &rules[r]) && mean_regret[s] <= least + AS_FAST &&
                (best < 0 || power_in(sizes[s]) > power_in(sizes[best])))
                best = s;
        places[r] = best;
    }
}

/* ---- which are good ---------------------------------------------------------------------------- */

CLONES static int64_t count_within(int64_t draws, const double *restrict latency_us,
                                   const double *restrict limit_us)
{
    int64_t within = 0;
    for (int64_t i = 0; i < draws; i++)
        within += latency_us[i] <= limit_us[i];
    return within;
}

static int is_good(int64_t draws, const sluice_good_search *how, const double *latency_us,
                   const double *limit_us)
{
    return (double)count_within(draws, latency_us, limit_us) / (double)draws >= how->share;
}

/* The first level to which a size keeps in enough draws; `levels` where it keeps to none. */
static int64_t level_of(int64_t draws, const sluice_good_search *how, const double *latency_us,
                        int64_t levels, const double *limits_us)
{
    int64_t level = levels;
    while (level > 0 && is_good(draws, how, latency_us, limits_us + (level - 1) * draws))
        level--;
    return level;
}

static int64_t least(int64_t one, int64_t other) { return one < other ? one : other; }

static int64_t greatest(int64_t one, int64_t other) { return one > other ? one : other; }

/* How many sizes `inner` writes at the most. */
static int64_t most_inner(const sluice_good_search *how, int64_t end_count)
{
    return how->jumps_to + 2 * (how->fragments_to + 1) * end_count;
}

/* The sizes before B/k, from low to high, and those beside which fragments or the remainder pass an
   end of a range. */
static int64_t inner(const sluice_size_limits *limits, const sluice_good_search *how, int64_t low,
                     int64_t high, int64_t end_count, const int64_t *ends, int64_t *more)
{
    const int64_t total = limits->message_bytes, unit = limits->unit_bytes;
    const int64_t fewest = greatest(how->jumps_from, total / high);
    int64_t found = 0;
    for (int64_t k = least(how->jumps_to, (total + low - 1) / low); k >= fewest; k--)
        more[found++] = (total - limits->min_bytes) / (k * unit) * unit;
    const int64_t whole = greatest(
        1, least(how->fragments_to, end_count ? how->jumps_to / end_count : how->jumps_to));
    for (int64_t e = 0; e < end_count; e++)
        for (int64_t k = 0; k <= whole; k++) {
            if (k > 0 && ends[e] >= total)
                break;
            const int64_t at = (k ? (total - ends[e]) / k : ends[e]) / unit * unit;
            if (low <= at && at <= high)
                more[found++] = at;
            if (low <= at + unit && at + unit <= high)
                more[found++] = at + unit;
        }
    return found;
}

static int64_t moved(const sluice_draws *all, const sluice_draws_room *use,
                     const sluice_size_limits *limits, const sluice_good_search *how, int64_t good,
                     int64_t bad, const double *limit_us, double *latency_us)
{
    for (;;) {
        const int64_t middle = (good + bad) / 2 / limits->unit_bytes * limits->unit_bytes;
        const int64_t low = least(good, bad), high = greatest(good, bad);
        if (middle <= low || middle >= high ||
            (double)(high - low) <= how->precision * (double)good)
            return good;
        const int may_be = is_admitted(limits, middle);
        if (may_be)
            sluice_draws_price(all, use, limits->message_bytes, middle, latency_us);
        if (may_be && is_good(all->draws, how, latency_us, limit_us))
            good = middle;
        else
            bad = middle;
    }
}

/* Sizes with their levels, ascending: those that were priced, and `more` of them that are not. */
typedef struct {
    int64_t count, *sizes, *levels;
    double *latency_us; /* (draws) */
} graded;

static void grade(const sluice_draws *all, const sluice_draws_room *use, int64_t total,
                  const sluice_good_search *how, int64_t levels, const double *limits_us,
                  int64_t left, const int64_t *more, graded *found)
{
    int64_t old = found->count;
    found->count += left;
    for (int64_t to = found->count - 1; left > 0; to--) {
        if (old > 0 && found->sizes[old - 1] > more[left - 1]) {
            found->sizes[to] = found->sizes[--old];
            found->levels[to] = found->levels[old];
            continue;
        }
        found->sizes[to] = more[--left];
        sluice_draws_price(all, use, total, more[left], found->latency_us);
        found->levels[to] = level_of(all->draws, how, found->latency_us, levels, limits_us);
    }
}

static int64_t intervals_of(const sluice_draws *all, const sluice_draws_room *use,
                            const sluice_size_limits *limits, const sluice_good_search *how,
                            int64_t levels, const double *limits_us, const graded *found,
                            int64_t *intervals)
{
    int64_t count = 0;
    for (int64_t level = 0; level < levels; level++) {
        const double *limit_us = limits_us + level * all->draws;
        for (int64_t first = 0, last; first < found->count; first = last + 1) {
            last = first;
            if (found->levels[first] > level)
                continue;
            while (last + 1 < found->count && found->levels[last + 1] <= level)
                last++;
            const int64_t before = first > 0 ? first - 1 : 0;
            const int64_t after = last + (last + 1 < found->count);
            int64_t *one = intervals + 3 * count++;
            one[0] = level;
            one[1] = moved(all, use, limits, how, found->sizes[first], found->sizes[before],
                           limit_us, found->latency_us);
            one[2] = moved(all, use, limits, how, found->sizes[last], found->sizes[after], limit_us,
                           found->latency_us);
        }
    }
    return count;
}

int64_t sluice_good_sizes(const sluice_draws *all, const sluice_size_limits *limits,
                          const sluice_good_search *how, int64_t count, const int64_t *sizes,
                          const double *latency_us, int64_t levels, const double *limits_us,
                          int64_t end_count, const int64_t *ends, int64_t *intervals)
{
    const int64_t draws = all->draws, most = count + most_inner(how, end_count);
    sluice_draws_room use;
    if (sluice_draws_open(all, &use))
        return SLUICE_SIZES_NO_MEMORY;
    int64_t *memory = malloc((size_t)(3 * most) * sizeof *memory);
    double *row = malloc((size_t)draws * sizeof *row);
    int64_t found = SLUICE_SIZES_NO_MEMORY;
    if (memory && row) {
        graded all_sizes = {count, memory, memory + most, row};
        int64_t first = -1, last = -1, *more = memory + 2 * most;
        for (int64_t s = 0; s < count; s++) {
            all_sizes.sizes[s] = sizes[s];
            all_sizes.levels[s] = level_of(draws, how, latency_us + s * draws, levels, limits_us);
            if (all_sizes.levels[s] == levels)
                continue;
            first = first < 0 ? s : first;
            last = s;
        }
        if (first >= 0) {
            const int64_t low = sizes[greatest(0, first - 1)];
            const int64_t high = sizes[least(last + 1, count - 1)];
            int64_t left = inner(limits, how, low, high, end_count, ends, more);
            left = admitted(limits, count, sizes, left, more);
            grade(all, &use, limits->message_bytes, how, levels, limits_us, left, more, &all_sizes);
        }
        found = intervals_of(all, &use, limits, how, levels, limits_us, &all_sizes, intervals);
    }
    free(row);
    free(memory);
    free(use.t);
    return found;
}
