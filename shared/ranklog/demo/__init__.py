"""A tiny real training job with a fault on one rank; nothing it logs is made up.

Rank processes train a logistic regression, data-parallel, all-reducing gradients over sockets.
"""

from ranklog.demo.run import DemoResult, run_demo

__all__ = ["DemoResult", "run_demo"]
