#!/bin/sh
# status.sh JOB: for --cluster-generic-status-cmd of snakemake. Prints running, success or failed. A job that is held counts as failed.
set -eu
state=$(condor_q "$1" -af JobStatus ExitCode)
case $state in
  "4 0") echo success ;;
  "" | 3* | 4* | 5*) echo failed ;;
  *) echo running ;;
esac
