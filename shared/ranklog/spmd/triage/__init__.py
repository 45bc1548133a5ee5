"""What happened to a run, from lines that speak of faults and from what its ranks last said. Pure."""
