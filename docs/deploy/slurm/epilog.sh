#!/bin/sh
# Slurm's Epilog, as root on each node when a job is over: sends what its agent could not send any more.
#   slurm.conf: Epilog=/etc/slurm/ranklog/epilog.sh
#   /etc/ranklog/agent.env: RANKLOG_DESTINATION=… and RANKLOG_API_KEY=…
# What can't be sent now stays in the spool, for the next epilog on this node. A node is never drained for it.
set -u
spools="${RANKLOG_SPOOLS:-/var/spool/ranklog}"
ranklog="${RANKLOG_COMMAND:-/opt/ranklog/bin/ranklog}"
environment="${RANKLOG_ENVIRONMENT:-/etc/ranklog/agent.env}"
set -a
[ -r "$environment" ] && . "$environment"
set +a
ended="$(date +%s)"
for spool in "$spools"/*/spool; do
  [ -d "$spool" ] || continue
  job="$(basename "$(dirname "$spool")")"
  # another job of this node may run still: only its own epilog, and those after it, take its spool
  [ "$job" = "$SLURM_JOB_ID" ] || [ -e "$spools/$job/over" ] || continue
  : > "$spools/$job/over"
  left=$((${RANKLOG_EPILOG_SECONDS:-60} - $(date +%s) + ended))
  [ "$left" -gt 0 ] || break
  # as the one whose spool it is: files of the spool are that user's
  if setpriv --reuid "$(stat -c %u "$spool")" --clear-groups \
    timeout "$left" "$ranklog" replay "$spool" --destination "$RANKLOG_DESTINATION"; then
    rm -rf "${spools:?}/$job"
  fi
done
exit 0
