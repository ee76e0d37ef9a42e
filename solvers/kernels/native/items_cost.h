/* What a fragment of items takes in a stage. */
#ifndef SLUICE_ITEMS_COST_H
#define SLUICE_ITEMS_COST_H

#include "items.h"
#include "portable.h"

INLINE double item_cost(const sluice_items *of, int64_t s, int64_t i, int64_t j)
{
    const double *spent = of->spent_us + s * (of->items + 1);
    if (of->ranges[s] == 1)
        return of->overhead_us[s] + (spent[j] - spent[i]);
    double size = (double)(of->bytes[j] - of->bytes[i]);
    int64_t r = of->first_range[s], last = r + of->ranges[s] - 1;
    while (r < last && size > of->end_bytes[r])
        r++;
    return of->range_overhead[r] + of->range_cost[r] * size / 1000.0 + (spent[j] - spent[i]);
}

#endif
