"""What training frameworks take to tell of themselves: handlers, callbacks, loggers of theirs.

Nothing here imports a framework that the job has not.
"""
