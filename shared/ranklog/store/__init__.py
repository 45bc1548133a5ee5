"""Where the bytes are: one small protocol, kept by memory, disk and S3. Keys are UTF-8, `/`-separated."""

from ranklog.store.protocol import ObjectInfo, Store

__all__ = ["ObjectInfo", "Store"]
