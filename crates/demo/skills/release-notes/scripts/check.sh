#!/bin/sh
# Says which headings of release notes have nothing below them.
awk '/^#/ { if (open && heading) print heading; heading = $0; open = 1; next } NF { open = 0 } END { if (open) print heading }' "$1"
