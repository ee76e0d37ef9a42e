#!/bin/sh
# Write the whole library into two files, for projects that keep a copy of it: FOLDER/sluice.c and
# FOLDER/sluice.h. Every name of sluice.c but the functions of sluice.h is static and begins with slt_.
#
#     amalgamate.sh FOLDER
set -eu

[ $# -eq 1 ] || { echo "usage: amalgamate.sh FOLDER" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
version=$(cat "$here/VERSION")
mkdir -p "$1"

# A source without its line of licence and without the library's own headers, which stand before it.
body() {
    printf '\n/* --- %s --- */\n' "${1#"$here"/src/}"
    awk 'FNR > 1 && !/^#include "/' "$1"
}

{
    cat <<END
/* SPDX-License-Identifier: Apache-2.0 */
/* libsluice $version in one file: its sources one behind the other, made by amalgamate.sh.

   Compile it as C11, or as C++17, or include it; it needs sluice.h beside it, POSIX, and gcc or clang.
   Where it is included behind headers of the system and the compiler is asked for strict C (-std=c11),
   _DEFAULT_SOURCE has to be defined before the first of them. */
#define SLT_OWN static
END
    # bytes.h comes first: it says what is asked of the system.
    for name in bytes layout; do body "$here/src/$name.h"; done
    printf '\n#include "sluice.h"\n'
    for name in table span; do body "$here/src/$name.h"; done
    for source in "$here"/src/*.c; do body "$source"; done
} > "$1/sluice.c.part"
cp "$here/include/sluice.h" "$1/sluice.h"
mv "$1/sluice.c.part" "$1/sluice.c"
