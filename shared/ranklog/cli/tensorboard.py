"""`ranklog tensorboard`: series for an unchanged TensorBoard."""

from __future__ import annotations

import argparse
import signal
import threading
from importlib.util import find_spec

from ranklog.cli.arguments import query_text
from ranklog.cli.console import Console
from ranklog.cli.scope import restrictions
from ranklog.cli.source import open_client
from ranklog.errors import BadInput


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Provide data until interrupted or told to stop."""
    if find_spec("tensorboard") is None or find_spec("grpc") is None:
        raise BadInput(
            "tensorboard is not installed", hint="pip install 'ranklog[engine,tensorboard]'"
        )
    from ranklog.tensorboard.board import Board
    from ranklog.tensorboard.provider import make_server

    client = open_client(arguments)
    board = Board(client, query_text(arguments), restrictions(arguments))
    board.listing()  # an unknown run is an error now, not in a page
    server, port = make_server(board, arguments.port)
    server.start()
    if console.json:
        console.object({"address": f"127.0.0.1:{port}"})
    else:
        console.line(f"tensorboard --grpc_data_provider=127.0.0.1:{port}")
    console.close()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    ended.wait()
    server.stop(grace=1).wait()
    return 0
