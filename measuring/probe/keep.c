/* Another program, which ends with whoever asked for it, and with all that it started.

   Who asked may be killed at any moment and can tell nobody. The kernel tells its child, this
   process (PR_SET_PDEATHSIG), which is the parent of all that its program leaves behind
   (PR_SET_CHILD_SUBREAPER): a process that made itself a session of its own is found too.

   SIGTERM ends all of it at once. SIGHUP asks the program to end, which it may do in its own way.

   Traps     the parent may be gone before it is asked for: its number is a word of the command.
             What dies leaves its children here, so that it is looked again until there are none. */
#include "probe.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANNOT_RUN = 126 };

/* The parent of a process; 0 where it is gone. Its name may have blanks and parentheses. */
static int parent_of(const char *process)
{
    char path[300], line[512];
    int found = 0;
    snprintf(path, sizeof path, "/proc/%s/stat", process);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    size_t length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = 0;
    const char *behind = strrchr(line, ')');
    return behind && sscanf(behind, ") %*c %d", &found) == 1 ? found : 0;
}

/* Kill each child; false where there is no /proc to find them in. */
static bool kill_children(void)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    int own = getpid();
    if (!folder)
        return false;
    while ((entry = readdir(folder)))
        if (isdigit((unsigned char)*entry->d_name) && parent_of(entry->d_name) == own)
            kill(atoi(entry->d_name), SIGKILL);
    closedir(folder);
    return true;
}

/* Until nothing is left; what was killed gives its own children to this process. */
static void kill_all(void)
{
    while (kill_children()) {
        int ended = waitpid(-1, NULL, WNOHANG);
        while (ended > 0)
            ended = waitpid(-1, NULL, WNOHANG);
        if (ended < 0 && errno == ECHILD)
            return;
        usleep(1000);
    }
}

static _Noreturn void be_program(char **words, const sigset_t *before, int parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(CANNOT_RUN);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    sigprocmask(SIG_SETMASK, before, NULL);
    execvp(*words, words);
    fprintf(stderr, "%s: %s\n", *words, strerror(errno));
    _exit(CANNOT_RUN);
}

/* End as the program did, by a signal too. */
static _Noreturn void end_as(int status)
{
    if (WIFSIGNALED(status)) {
        struct rlimit none = {0, 0};
        sigset_t all;
        setrlimit(RLIMIT_CORE, &none);
        signal(WTERMSIG(status), SIG_DFL);
        sigfillset(&all);
        sigprocmask(SIG_UNBLOCK, &all, NULL);
        raise(WTERMSIG(status));
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : PROBE_FAILED);
}

int run_kept(int parent, char **words)
{
    sigset_t wanted, before;
    int own = getpid(), status;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGHUP);
    sigaddset(&wanted, SIGCHLD);
    sigprocmask(SIG_BLOCK, &wanted, &before);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) || prctl(PR_SET_CHILD_SUBREAPER, 1))
        refuse(PROBE_NOT_HERE, "prctl: %s", strerror(errno));
    if (getppid() != parent)
        return PROBE_FAILED;
    int child = fork();
    if (child < 0)
        refuse(PROBE_FAILED, "fork: %s", strerror(errno));
    if (!child)
        be_program(words, &before, own);
    for (;;) {
        int came = sigwaitinfo(&wanted, NULL);
        if (came == SIGTERM) {
            kill_all();
            return PROBE_FAILED;
        }
        if (came == SIGHUP) {
            kill(child, SIGTERM); /* it is there: only what follows waits for it */
            continue;
        }
        int ended;
        while ((ended = waitpid(-1, &status, WNOHANG)) > 0) {
            if (ended != child)
                continue; /* what it left behind */
            kill_all();
            end_as(status);
        }
    }
}
