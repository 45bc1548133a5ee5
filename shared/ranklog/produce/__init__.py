"""Lines out of a training process: identity, context, capture, journal; and the collector that frames them.

A call never raises, never waits for a network, and what it has written survives the process.
"""
