"""What a store needs done now and then, for each of its tenants: compaction, retention, swept leftovers.

The scheduled functions and `ranklog serve --roles compact` do the same work from here.
"""
