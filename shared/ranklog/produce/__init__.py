"""What runs in a training job: context, handlers, capture, sender. Imports only the standard library, msgpack and zstandard."""
