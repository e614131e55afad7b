#!/bin/sh
# submit.sh CPUS MEGABYTES JOBSCRIPT: for --cluster-generic-submit-cmd of snakemake. Submits a job script, and prints the job's number.
#
# The directory of the workflow must be in the job's container, at the same path: name a pod template that mounts it in
# SLOTWRIGHT_TEMPLATE, and an image with snakemake in SLOTWRIGHT_IMAGE. Logs are in .snakemake/condor.
set -eu
mkdir -p .snakemake/condor
condor_submit -terse - <<END | cut -d ' ' -f 1
executable          = /bin/sh
transfer_executable = false
arguments           = "'$3'"
remote_initialdir   = $PWD
request_cpus        = $1
request_memory      = $2 MB
batch_name          = snakemake
log                 = $PWD/.snakemake/condor/jobs.log
leave_in_queue      = JobStatus == 4
queue
END
