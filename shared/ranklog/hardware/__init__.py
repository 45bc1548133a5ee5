"""What the machine does while it trains: readings of host, process and GPUs, as points."""
