"""Calls that a job makes to its trackers arrive here as well; and a SummaryWriter of ours."""
