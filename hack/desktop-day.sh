#!/bin/bash
# Simulates examples/simulate/desktop-day.yaml and writes its transitions into the tables of docs/concepts/desktop-day.md: the
# table below a line `<!-- 08:30 to 09:00 -->` has the transitions between these two times. The text between the tables stays.
set -euo pipefail
cd "$(dirname "$0")/.."
${CARGO:-cargo} build -q --locked --bin slotwright
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"${CARGO_TARGET_DIR:-target}/debug/slotwright" simulate examples/simulate/desktop-day.yaml --out "$out" >/dev/null
awk -F, '
    # The simulated day begins at 06:00.
    NR == FNR && FNR > 1 {
        at = int($1) + 6 * 3600
        clock = sprintf("%02d:%02d:%02d", at / 3600, at % 3600 / 60, at % 60)
        rows[++count] = sprintf("| %s | **%s** | %s | %s | %s | %s |", clock, $3, $4, $5, $6, $7)
        times[count] = clock
    }
    NR == FNR { next }
    /^\|/ { next }
    { print }
    /^<!-- [0-9:]+ to [0-9:]+ -->$/ {
        split($0, word, " ")
        print "| time | | from | to | why | job |"
        print "| --- | --- | --- | --- | --- | --- |"
        for (i = 1; i <= count; i++) if (times[i] >= word[2] ":00" && times[i] < word[4] ":00") print rows[i]
    }
' "$out/transitions.csv" docs/concepts/desktop-day.md >"$out/page.md"
cp "$out/page.md" docs/concepts/desktop-day.md
echo docs/concepts/desktop-day.md
