/* SPDX-License-Identifier: Apache-2.0 */
/* Texts: codes in words, the version. */
#include "table.h"

const char *sluice_error_text(int code)
{
    switch (code) {
    case SLUICE_OK: return "no error";
    case SLUICE_E_ARGUMENT: return "a null pointer, or a table that is not open";
    case SLUICE_E_SYSTEM: return "the operating system refused (see errno)";
    case SLUICE_E_FORMAT: return "not a table file";
    case SLUICE_E_VERSION: return "a table file of a version that is not known here";
    case SLUICE_E_TRUNCATED: return "the file is shorter or longer than its header says";
    case SLUICE_E_CHECKSUM: return "the checksum is wrong: the file was damaged";
    case SLUICE_E_INVALID: return "the file breaks a rule of the table format";
    case SLUICE_E_RANGE: return "the message is outside the table's range";
    case SLUICE_E_CAPACITY: return "the array or the buffer is too short";
    case SLUICE_E_NO_REPEAT: return "no size can be repeated for this message";
    case SLUICE_E_BUSY: return "another thread is swapping this live table";
    case SLUICE_E_CHANGED: return "the file changed while it was read";
    case SLUICE_E_IN_USE: return "every table that a swap could use is still being read";
    default: return "an unknown code";
    }
}

#define SLT_TEXT_OF(number) #number
#define SLT_TEXT(number) SLT_TEXT_OF(number)

const char *sluice_version(void)
{
    return SLT_TEXT(SLUICE_VERSION_MAJOR) "." SLT_TEXT(SLUICE_VERSION_MINOR) "." SLT_TEXT(SLUICE_VERSION_PATCH);
}
