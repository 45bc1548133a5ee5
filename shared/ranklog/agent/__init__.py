"""The node agent: reads the spool of a host, gives lines their seq, frames, sends and replays them.

Nothing is sent that its log does not hold, and what was sent is never framed again.
"""
