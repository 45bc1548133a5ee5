"""Where the bytes are: one small protocol, kept by memory, disk and S3. Keys are UTF-8, `/`-separated."""

from ranklog.store.disk import DiskStore
from ranklog.store.memory import MemoryStore
from ranklog.store.open import open_store
from ranklog.store.protocol import ObjectInfo, Store
from ranklog.store.s3 import S3Store

__all__ = ["DiskStore", "MemoryStore", "ObjectInfo", "S3Store", "Store", "open_store"]
