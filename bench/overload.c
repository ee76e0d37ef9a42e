/* Clients that post to a path, each another question at each request, on one thread.
 *
 *     overload PORT CLIENTS SECONDS PATH BODY_FILE again RETRY_S
 *     overload PORT CLIENTS SECONDS PATH BODY_FILE rest REST_S
 *
 * BODY_FILE holds a JSON body whose "NNNNNNNN" is replaced by a number of eight digits that nobody
 * has asked before. `again`: a client asks without a pause; one that is refused asks again after
 * what Retry-After says, or, where RETRY_S is above 0, after so many seconds: all of them in step.
 * `rest`: a client rests after each answer, for REST_S, half as long or up to half as long again.
 * Each line of the output is an answer: its status, its time in ms from the first byte sent, and
 * when it came in ms.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_BYTES = 1 << 20, REQUEST_BYTES = 1 << 14 };

struct client {
    int fd, is_waiting;
    size_t got, whole;
    uint64_t begun_ns, due_ns;
    char answer[ANSWER_BYTES];
};

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static char request[REQUEST_BYTES];
static size_t request_bytes;
static char *number_at;
static uint32_t number = 20000000;

static void read_body(const char *path, const char *to) {
    static char body[REQUEST_BYTES - 512];
    FILE *file = fopen(path, "r");
    if (!file) fail(path);
    size_t length = fread(body, 1, sizeof body - 1, file);
    fclose(file);
    request_bytes = (size_t)snprintf(request, sizeof request,
        "POST %s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
        "Content-Length: %zu\r\n\r\n%s", to, length, body);
    number_at = strstr(request, "NNNNNNNN");
    if (!number_at) fail("the body has no NNNNNNNN");
}

static void connect_to(struct client *one, int port, int events, uint32_t place) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int yes = 1;
    one->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (one->fd < 0 || connect(one->fd, (struct sockaddr *)&address, sizeof address)) fail("connect");
    setsockopt(one->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    fcntl(one->fd, F_SETFL, O_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = place};
    epoll_ctl(events, EPOLL_CTL_ADD, one->fd, &event);
}

static void ask(struct client *one) {
    char digits[9];
    snprintf(digits, sizeof digits, "%08u", number++);
    memcpy(number_at, digits, 8);
    one->got = one->whole = 0;
    one->is_waiting = 0;
    one->begun_ns = now_ns();
    if (send(one->fd, request, request_bytes, MSG_NOSIGNAL) != (ssize_t)request_bytes) one->begun_ns = 0;
}

/* Returns the value of a header as a number, or `missing`. */
static double header(const struct client *one, const char *name, double missing) {
    char *found = strcasestr(one->answer, name);
    return found ? atof(found + strlen(name)) : missing;
}

static int is_whole(struct client *one) {
    one->answer[one->got] = 0;
    if (!one->whole) {
        char *end = strstr(one->answer, "\r\n\r\n");
        if (!end) return 0;
        one->whole = (size_t)(end + 4 - one->answer) + (size_t)header(one, "\ncontent-length:", 0);
    }
    return one->got >= one->whole;
}

int main(int count, char **words) {
    if (count != 8) return fprintf(stderr, "PORT CLIENTS SECONDS PATH BODY_FILE again|rest S\n"), 2;
    int port = atoi(words[1]), clients = atoi(words[2]), events = epoll_create1(0);
    int rests = !strcmp(words[6], "rest");
    double retry_s = rests ? 0 : atof(words[7]), rest_s = rests ? atof(words[7]) : 0;
    struct client *all = calloc((size_t)clients, sizeof *all);
    if (!all) fail("calloc");
    number += (uint32_t)(now_ns() / 1000 % 60000000);
    read_body(words[5], words[4]);
    for (int place = 0; place < clients; place++) connect_to(&all[place], port, events, (uint32_t)place);
    uint64_t begun_ns = now_ns(), end_ns = begun_ns + (uint64_t)(atof(words[3]) * 1e9);
    /* Times to try again are whole seconds: clients that begin together would come back together. */
    for (int place = 0; place < clients; place++) {
        all[place].is_waiting = 1;
        all[place].due_ns = begun_ns + (retry_s > 0 ? 0 : 1000000000ull * (uint64_t)place / (uint64_t)clients);
    }
    while (now_ns() < end_ns) {
        struct epoll_event ready[256];
        int found = epoll_wait(events, ready, 256, 2);
        for (int i = 0; i < found; i++) {
            struct client *one = &all[ready[i].data.u32];
            ssize_t part = recv(one->fd, one->answer + one->got, ANSWER_BYTES - 1 - one->got, 0);
            if (part < 0 && (errno == EAGAIN || errno == EINTR)) continue;
            int is_closed = part <= 0;
            if (!is_closed) {
                one->got += (size_t)part;
                if (!is_whole(one)) continue;
                uint64_t came_ns = now_ns();
                int status = atoi(one->answer + 9);
                printf("%d %.3f %.3f\n", status, (double)(came_ns - one->begun_ns) / 1e6,
                       (double)(came_ns - begun_ns) / 1e6);
                double pause_s = rest_s * (0.5 + (double)rand() / RAND_MAX);
                if (status == 503 && !rests) pause_s = retry_s > 0 ? retry_s : header(one, "\nretry-after:", 1);
                one->is_waiting = 1;
                one->due_ns = came_ns + (uint64_t)(pause_s * 1e9);
                is_closed = strcasestr(one->answer, "\nconnection: close") != NULL;
                one->got = 0;
            } else {
                printf("0 0 %.3f\n", (double)(now_ns() - begun_ns) / 1e6);
                one->is_waiting = 1;
                one->due_ns = now_ns();
            }
            if (is_closed) {
                close(one->fd);
                connect_to(one, port, events, ready[i].data.u32);
            }
        }
        uint64_t now = now_ns();
        for (int place = 0; place < clients; place++)
            if (all[place].is_waiting && all[place].due_ns <= now) ask(&all[place]);
    }
    return 0;
}
