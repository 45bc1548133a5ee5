"""The Python client: a store or an API in, answers out."""

from ranklog.client.answer import Answer, CountAnswer, Listing
from ranklog.client.client import Client

__all__ = ["Answer", "Client", "CountAnswer", "Listing"]
