"""What `hot/` compiles to."""

import logging
import mmap
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from types import CodeType
from typing import Any

VERSION: int

class RingFields:
    @property
    def memory(self) -> mmap.mmap: ...
    head: int
    inline_limit: int
    lap: int
    limit: int
    offset: int
    records: int
    reserve_limit: int
    def attach(self, memory: mmap.mmap) -> None: ...
    def detach(self) -> None: ...

class CallFields:
    file: str
    line: int
    function: str | None
    logger: str | None
    level: int
    site: int
    template: str | None
    text_word: int
    arguments_word: int
    code: CodeType | None
    instruction: int
    owner: object

class ProducerFields:
    ring: Any
    owner: object
    doubles: dict[str, int]
    last_series: tuple[Any, int]
    def forget_known(self) -> None: ...
    def line(self, call: Any, message: Any, arguments: Any = ..., /) -> None: ...

class HandlerFields:
    producer: Any
    handlers_seen: int
    def handle(self, record: logging.LogRecord, /) -> bool: ...

class LogMethod:
    def __init__(
        self,
        slow: Callable[..., None],
        handler: HandlerFields,
        find: Callable[..., Any],
        source: str,
    ) -> None: ...
    def __call__(self, *arguments: Any, **words: Any) -> None: ...

def configure(
    stamp: ContextVar[Any],
    iteration: ContextVar[int],
    empty: object,
    inherited: int,
    process: object,
    root: logging.Logger,
    record_type: type[logging.LogRecord],
    offset_ns: int,
    record_fields: int,
    /,
) -> None: ...
def attach(producer: object, slow: Callable[..., None], /) -> None: ...
def telemetry(values: Mapping[str, Any], /, **dims: Any) -> None: ...
