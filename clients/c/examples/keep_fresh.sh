#!/bin/sh
# Keep a table file as fresh as the service has it; the reader beside it needs no network.
#
#     keep_fresh.sh URL FILE [SECONDS]
#
# URL is the service's, as http://127.0.0.1:8080/profiles/myrinet-gam/table?format=slt. Without SECONDS
# it asks once. An unchanged table costs a 304 and no transfer: FILE.etag has what the service called
# the one that is there. A new one is written beside FILE, synced and renamed over it, so that at any
# time there is a whole file, and a process that has the old one mapped keeps the old bytes.
#
# Where the service asks for a key, SLUICE_KEY has it: curl gets it by its standard input, since all
# may see its arguments.
#
# Ends with 0 where FILE is as the service has it, otherwise with 1 and FILE as it was.

set -u
[ $# -ge 2 ] || { echo "usage: keep_fresh.sh URL FILE [SECONDS]" >&2; exit 2; }
url=$1 file=$2 every=${3:-}

new=$file.new.$$ headers=$file.headers.$$
trap 'rm -f "$new" "$headers"' EXIT
trap 'exit 1' HUP INT TERM

# What the service called the file that is here; nothing where there is none.
known_etag() {
    [ -f "$file" ] && [ -f "$file.etag" ] && cat "$file.etag"
}

etag_of_answer() {
    sed -n 's/^[Ee][Tt][Aa][Gg]: *//p' "$headers" | tr -d '\r' | tail -n 1
}

# The name last: where this ends before it is written, the file is only fetched once more.
install_new() {
    rm -f "$file.etag"
    sync "$new" 2>/dev/null || sync
    mv -f "$new" "$file" || return 1
    etag_of_answer > "$file.etag.$$" && mv -f "$file.etag.$$" "$file.etag"
}

refresh() {
    etag=$(known_etag)
    status=$(printf '%s' "${SLUICE_KEY:+Authorization: Bearer $SLUICE_KEY}" |
        curl --silent --show-error --max-time 60 --dump-header "$headers" --output "$new" --header @- \
        --write-out '%{http_code}' ${etag:+--header "If-None-Match: $etag"} "$url") || return 1
    case $status in
    200) install_new && echo "$file: new" ;;
    304) ;;
    *) echo "keep_fresh.sh: $file stays: the service answered $status" >&2; return 1 ;;
    esac
}

refresh
result=$?
while [ -n "$every" ]; do
    sleep "$every"
    refresh
done
exit $result
