"""ranklog on a machine of one's own: the roles of `ranklog serve`, each in processes of its own.

api answers and takes frames; ingest brings frames from a stream on disk into the store, in batches;
compact tends the store of every tenant. What AWS does with functions happens here with these.
"""
