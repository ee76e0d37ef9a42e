/* SPDX-License-Identifier: Apache-2.0 */
/* Where a table lies: the convention for programs that are not told. */
#include "table.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif

/* A path that is put together in the caller's buffer. */
typedef struct slt_path {
    char *text;
    size_t length;
    size_t capacity; /* from 1; what does not fit is counted and not written */
} slt_path;

static void slt_add(slt_path *path, const char *text)
{
    size_t length = strlen(text);
    if (path->length < path->capacity && length < path->capacity - path->length)
        memcpy(path->text + path->length, text, length + 1);
    path->length += length;
}

/* Whether the variables of the environment are the user's own: not in a program that has more rights
   than who started it. */
static int slt_may_ask(void)
{
#if defined(__linux__)
    return getauxval(AT_SECURE) == 0;
#else
    return getuid() == geteuid() && getgid() == getegid();
#endif
}

/* The value of a variable; null where it is not set, empty or not to be asked. */
static const char *slt_variable(const char *name)
{
    const char *value = slt_may_ask() ? getenv(name) : NULL;
    return value && value[0] ? value : NULL;
}

static int slt_is_name(const char *name)
{
    size_t length = 0;
    for (; name[length]; length++) {
        char one = name[length];
        int is_letter = (one >= 'a' && one <= 'z') || (one >= '0' && one <= '9');
        int is_mark = one == '.' || one == '_' || one == '-';
        if (length == SLT_MAX_NAME_BYTES || (!is_letter && (length == 0 || !is_mark)))
            return 0;
    }
    return length > 0;
}

/* FOLDER/BELOW/NAME.slt: SLUICE_OK where it is there, SLUICE_E_SYSTEM where it is not. */
static int slt_look(slt_path *path, const char *folder, const char *below, const char *name)
{
    struct stat status;
    path->length = 0;
    slt_add(path, folder);
    slt_add(path, below);
    slt_add(path, "/");
    slt_add(path, name);
    slt_add(path, ".slt");
    if (path->length >= path->capacity)
        return SLUICE_E_CAPACITY;
    return stat(path->text, &status) == 0 ? SLUICE_OK : SLUICE_E_SYSTEM;
}

/* In what SLUICE_TABLE names: a folder, or the file itself, whether or not it is there. */
static int slt_look_there(slt_path *path, const char *place, const char *name)
{
    struct stat status;
    if (stat(place, &status) == 0 && S_ISDIR(status.st_mode))
        return slt_look(path, place, "", name);
    path->length = 0;
    slt_add(path, place);
    return path->length >= path->capacity ? SLUICE_E_CAPACITY : SLUICE_OK;
}

int sluice_table_find(const char *name, char *path, size_t capacity)
{
    slt_path found = {path, 0, capacity};
    const char *place;
    int code = SLUICE_E_SYSTEM;
    if (!name || !slt_is_name(name) || !path || capacity == 0)
        return SLUICE_E_ARGUMENT;
    path[0] = 0;
    errno = ENOENT;
    if ((place = slt_variable("SLUICE_TABLE")) != NULL)
        return slt_look_there(&found, place, name);
    if ((place = slt_variable("XDG_CONFIG_HOME")) != NULL)
        code = slt_look(&found, place, "/sluice", name);
    else if ((place = slt_variable("HOME")) != NULL)
        code = slt_look(&found, place, "/.config/sluice", name);
    if (code == SLUICE_E_SYSTEM)
        code = slt_look(&found, "/etc/sluice", "", name);
    if (code != SLUICE_OK)
        path[0] = 0;
    return code;
}
