#!/bin/sh
# Slurm's Prolog, as root on each node of a job: a spool on the node's disk that is its user's own.
#   slurm.conf: Prolog=/etc/slurm/ranklog/prolog.sh
set -eu
spool="${RANKLOG_SPOOLS:-/var/spool/ranklog}/$SLURM_JOB_ID"
install -d -m 0711 "$(dirname "$spool")"
install -d -m 0700 -o "$SLURM_JOB_UID" "$spool"
