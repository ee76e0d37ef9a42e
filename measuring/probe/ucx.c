/* Active messages of UCX, between a process and one that it forks: the first measures.

   Compiled with PROBE_UCX and linked with libucp where that is to be measured, and not otherwise.
   Active messages are what Culler et al. (1996) measure; how one travels is UCX's choice, as of
   any program (UCX_TLS, UCX_RNDV_THRESH).
   Traps     one step of the worker may bring several messages, which wait in a queue here; data
             that may not be held is copied at once; a large message is first announced, and its
             bytes are fetched when it is received. */
#include "probe.h"

#ifndef PROBE_UCX

typedef int there_is_no_ucx; /* ISO C has no empty source */

#else

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

enum { MESSAGE_ID = 1, LANES_BYTES = 256 };

/* A message that is there: its bytes held or copied, or announced. */
struct arrival {
    void *held;
    unsigned char *copy;
    size_t bytes;
    bool is_announced;
};

struct request {
    void *handle;
    bool is_begun;
};

static ucp_worker_h worker;
static ucp_ep_h peer;
static struct arrival *arrivals;
static size_t room, put, taken;
static struct request sending, fetching;

static void check(ucs_status_t status, const char *what)
{
    if (status != UCS_OK)
        refuse(PROBE_FAILED, "%s: %s", what, ucs_status_string(status));
}

/* Whether what was begun is done; then it is free again. */
static bool is_done(struct request *one, const char *what)
{
    ucs_status_t status = UCS_PTR_STATUS(one->handle);
    if (UCS_PTR_IS_PTR(one->handle)) {
        status = ucp_request_check_status(one->handle);
        if (status == UCS_INPROGRESS)
            return false;
        ucp_request_free(one->handle);
    }
    *one = (struct request){0};
    check(status, what);
    return true;
}

static ucs_status_t arrived(void *with, const void *header, size_t header_bytes, void *data,
                            size_t bytes, const ucp_am_recv_param_t *how)
{
    (void)with, (void)header, (void)header_bytes;
    struct arrival *one = &arrivals[put % room];
    if (put - taken == room)
        refuse(PROBE_FAILED, "more messages came than were sent");
    one->bytes = bytes;
    one->is_announced = how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV;
    bool is_held = one->is_announced || how->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA;
    one->held = is_held ? data : NULL;
    put++;
    if (is_held)
        return UCS_INPROGRESS;
    if (!one->copy && !(one->copy = malloc(bytes))) /* all messages of an end have one size */
        refuse(PROBE_FAILED, "there is no memory for %zu bytes", bytes);
    memcpy(one->copy, data, bytes);
    return UCS_OK;
}

static void make_worker(void)
{
    ucp_params_t wanted = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_AM};
    ucp_worker_params_t used = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                .thread_mode = UCS_THREAD_MODE_SINGLE};
    ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                      UCP_AM_HANDLER_PARAM_FIELD_CB,
        .id = MESSAGE_ID,
        .flags = UCP_AM_FLAG_WHOLE_MSG,
        .cb = arrived};
    ucp_context_h context;
    check(ucp_init(&wanted, NULL, &context), "init");
    check(ucp_worker_create(context, &used, &worker), "worker");
    check(ucp_worker_set_am_recv_handler(worker, &handler), "handler");
}

/* Both ends tell each other where they are. */
static void connect_over(int file)
{
    ucp_address_t *own, *other;
    size_t own_bytes, other_bytes;
    check(ucp_worker_get_address(worker, &own, &own_bytes), "address");
    if (!write_all(file, &own_bytes, sizeof own_bytes) || !write_all(file, own, own_bytes) ||
        !read_all(file, &other_bytes, sizeof other_bytes) || !(other = malloc(other_bytes)) ||
        !read_all(file, other, other_bytes))
        refuse(PROBE_FAILED, "the other end has ended");
    ucp_ep_params_t at = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = other};
    check(ucp_ep_create(worker, &at, &peer), "end point");
    ucp_worker_release_address(worker, own);
    free(other);
    close(file);
}

/* Which transports it chose, of "#  lane[0]:  2:posix/memory.0 md[2] ..." a line. */
static void tell_lanes(void)
{
    char *text = NULL, found[LANES_BYTES] = "", one[64];
    size_t bytes = 0;
    FILE *memory_file = open_memstream(&text, &bytes);
    if (!memory_file)
        return;
    ucp_ep_print_info(peer, memory_file);
    fclose(memory_file);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (sscanf(line, "# lane[%*d]: %*d:%63s", one) == 1 &&
            strlen(found) + strlen(one) + 3 < sizeof found)
            strcat(strcat(found, *found ? ", " : ""), one);
    free(text);
    fact("lanes", *found ? found : "not told");
}

static int open_ucx(const struct options *asked, bool *is_replier)
{
    char version[64];
    int file[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, file))
        refuse(PROBE_FAILED, "%s", strerror(errno));
    room = asked->window + 1;
    if (!(arrivals = calloc(room, sizeof *arrivals)))
        refuse(PROBE_FAILED, "there is no memory for a window of %zu", asked->window);
    int child = fork_end(asked); /* first: UCX does not live through a fork */
    *is_replier = !child;
    close(file[*is_replier ? 0 : 1]);
    make_worker();
    connect_over(file[*is_replier ? 1 : 0]);
    if (*is_replier)
        return 0;
    snprintf(version, sizeof version, "UCX %s", ucp_get_version_string());
    fact("library", version);
    tell_lanes();
    return child;
}

static bool ucx_send_some(const unsigned char *message, size_t bytes)
{
    static const ucp_request_param_t plain = {0};
    if (!sending.is_begun)
        sending = (struct request){
            ucp_am_send_nbx(peer, MESSAGE_ID, NULL, 0, message, bytes, &plain), true};
    else
        ucp_worker_progress(worker);
    return is_done(&sending, "send");
}

static int ucx_receive_some(unsigned char *message, size_t bytes)
{
    static const ucp_request_param_t plain = {0};
    if (put == taken || fetching.is_begun)
        ucp_worker_progress(worker);
    if (put == taken)
        return 0;
    struct arrival *one = &arrivals[taken % room];
    if (one->bytes != bytes)
        refuse(PROBE_FAILED, "%zu bytes came in place of %zu", one->bytes, bytes);
    if (one->is_announced) {
        if (!fetching.is_begun)
            fetching = (struct request){
                ucp_am_recv_data_nbx(worker, one->held, message, bytes, &plain), true};
        if (!is_done(&fetching, "receive"))
            return 0;
    } else {
        memcpy(message, one->held ? one->held : one->copy, bytes);
        if (one->held)
            ucp_am_data_release(worker, one->held);
    }
    taken++;
    return 1;
}

const struct library LIBRARY = {open_ucx, ucx_send_some, ucx_receive_some, NULL};

#endif
