"""Order, deduplicate, aggregate and cut what tasks returned. Pure."""
