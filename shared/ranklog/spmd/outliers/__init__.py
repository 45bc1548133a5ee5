"""All ranks against the consensus of their peers: what each says and they do not, and the reverse."""
