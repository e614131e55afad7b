#!/bin/bash
# Simulates the scenarios docs/figures/NAME.yaml, and writes NAME.csv and the plot NAME.svg beside each. The plot shows real
# priorities; that of fair-share shows the resources of each submitter.
set -euo pipefail
cd "$(dirname "$0")/.."
${CARGO:-cargo} build -q --locked --bin slotwright
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for scenario in docs/figures/*.yaml; do
    name=$(basename "$scenario" .yaml)
    "${CARGO_TARGET_DIR:-target}/debug/slotwright" simulate "$scenario" --out "$out/$name" >/dev/null
    cp "$out/$name/submitters.csv" "docs/figures/$name.csv"
    case $name in fair-share) plot=submitters ;; *) plot=priorities ;; esac
    cp "$out/$name/$plot.svg" "docs/figures/$name.svg"
    echo "docs/figures/$name.csv docs/figures/$name.svg"
done
hack/desktop-day.sh
