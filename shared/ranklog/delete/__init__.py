"""Deletion: tombstones, retention, and the log of who did it. *What a tombstone hides no answer shows,
whichever segment holds it; what it does not name stays.*
"""
