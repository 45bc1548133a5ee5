#!/bin/sh
# Slurm's TaskProlog, as the user before each task: what it prints becomes the task's environment.
#   slurm.conf: TaskProlog=/etc/slurm/ranklog/task-prolog.sh
echo "export RANKLOG_SPOOL=${RANKLOG_SPOOLS:-/var/spool/ranklog}/$SLURM_JOB_ID/spool"
echo "export RANKLOG_TAGS=${RANKLOG_TAGS:+$RANKLOG_TAGS,}partition=${SLURM_JOB_PARTITION:-}"
