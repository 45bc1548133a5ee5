"""A tiny data-parallel job for tests: `train.py FAULT [init]`, started by torchrun.

Every rank logs each iteration on stderr and all-reduces; on rank 1 the fault comes at iteration 3.
"""

from __future__ import annotations

import ctypes
import datetime
import logging
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

FAULT_RANK, FAULT_ITERATION, ITERATIONS = 1, 3, 6
# A busy machine starts ranks apart from each other; only who waits for one that hangs has less time.
MEET_S, HANG_S = 90, 4

logger = logging.getLogger("train")


def fault(kind: str, rank: int) -> None:
    """What happens to rank 1."""
    logger.error("rank %d meets %s", rank, kind)
    if kind == "exc":
        raise ValueError(f"loss became NaN at iteration {FAULT_ITERATION} on rank {rank}")
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "oexit":
        os._exit(7)
    if kind == "segv":
        ctypes.string_at(0)
    if kind == "hang":
        time.sleep(60)
    if kind == "sigterm":  # from outside, to the launcher
        os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(60)


def restarted() -> None:
    """A job that fails once. Its ranks never meet: gloo does not always, after a restart."""
    rank = int(os.environ["RANK"])
    logger.info("rank %d begins", rank)
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        if rank == FAULT_RANK:
            logger.error("rank %d meets restart", rank)
            sys.exit(5)
        time.sleep(60)
    logger.info("rank %d done", rank)


def main(kind: str, with_init: bool) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    if with_init:
        import ranklog

        ranklog.init()
        ranklog.log("started")
        ranklog.flush(20)  # the agent, which is started now, is there before the fault
    if kind == "restart":
        restarted()
        return
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=MEET_S))
    rank = dist.get_rank()
    group = None
    if kind == "hang":
        group = dist.new_group(timeout=datetime.timedelta(seconds=HANG_S))
    print(f"stdout of rank {rank} of {dist.get_world_size()}")
    for iteration in range(ITERATIONS):
        if rank == FAULT_RANK and iteration == FAULT_ITERATION:
            fault(kind, rank)
        loss = torch.ones(1) * iteration
        dist.all_reduce(loss, group=group)
        logger.info("rank %d iteration %d loss %.1f", rank, iteration, loss.item())
        if iteration == FAULT_ITERATION - 1:
            dist.barrier()  # every rank has said that much
    logger.info("rank %d done", rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] == ["init"])
