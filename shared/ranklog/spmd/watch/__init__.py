"""Judgement over a run that goes on: facts are fed as they come, conditions hold or don't. Pure: every
time is an argument."""
