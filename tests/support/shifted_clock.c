/* The time of day, moved by SLUICE_TEST_CLOCK_S seconds: loaded before the C library's own.
 *
 * Intervals (CLOCK_MONOTONIC and the others) go on as they are: a clock that is set wrong does not
 * make a machine's seconds longer.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static time_t shift_s(void) {
    const char *text = getenv("SLUICE_TEST_CLOCK_S");
    return text == NULL ? 0 : (time_t)strtol(text, NULL, 10);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*own)(clockid_t, struct timespec *);
    if (own == NULL) own = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const int ended = own(clock, time);
    if (ended == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        time->tv_sec += shift_s();
    return ended;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    struct timespec now;
    const int ended = clock_gettime(CLOCK_REALTIME, &now);
    if (ended == 0) {
        time->tv_sec = now.tv_sec;
        time->tv_usec = (suseconds_t)(now.tv_nsec / 1000);
    }
    return ended;
}

time_t time(time_t *into) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (into != NULL) *into = now.tv_sec;
    return now.tv_sec;
}
