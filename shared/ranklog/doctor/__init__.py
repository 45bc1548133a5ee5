"""What would and wouldn't be captured here, in plain words; looks, and changes nothing."""
