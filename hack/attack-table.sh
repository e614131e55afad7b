#!/bin/bash
# attack-table.sh ROWS: prints the table of the attacks whose rows tests/e2e/attack has written into the file ROWS. Only an attack
# that had no effect has a row.
set -euo pipefail
{ echo "attack|tried|what came of it"; sort -t'|' -k1n "$1"; } | column -t -s'|'
