"""The gRPC service that `tensorboard --grpc_data_provider=ADDRESS` asks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from concurrent import futures
from itertools import pairwise
from typing import Any, TypeVar

import grpc
import numpy as np
from tensorboard.compat.proto import summary_pb2
from tensorboard.data.proto import data_provider_pb2 as pb
from tensorboard.data.proto import data_provider_pb2_grpc as service
from tensorboard.plugins.histogram import metadata as histogram_metadata
from tensorboard.plugins.scalar import metadata as scalar_metadata
from tensorboard.util import tensor_util

from ranklog.errors import BadInput, BadQuery, RanklogError
from ranklog.tensorboard.board import Board, Course, Kind

_PLUGINS: tuple[tuple[Kind, Any], ...] = (
    ("scalars", scalar_metadata),
    ("histograms", histogram_metadata),
)
# Requests that are answered at once; TensorBoard asks for a page of plots in one.
_THREADS = 4
_POINTS_DEFAULT = 1000
_METADATA: dict[Kind, Any] = {
    kind: summary_pb2.SummaryMetadata.FromString(
        plugin.create_summary_metadata("", "").SerializeToString()
    )
    for kind, plugin in _PLUGINS
}
_Answer = TypeVar("_Answer")


class Provider(service.TensorBoardDataProviderServicer):  # type: ignore[misc]
    """Scalars and histograms of a board; the distributions are TensorBoard's own view of these."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def GetExperiment(self, request: Any, context: Any) -> Any:
        return pb.GetExperimentResponse(
            data_location="ranklog", name=self._board.name, description="series of ranklog"
        )

    def ListPlugins(self, request: Any, context: Any) -> Any:
        tags = _asked(context, self._board.listing).tags
        names = [kind for kind, found in tags.items() if found]
        return pb.ListPluginsResponse(plugins=[pb.Plugin(name=name) for name in names])

    def ListRuns(self, request: Any, context: Any) -> Any:
        began = _asked(context, self._board.listing).began_ns
        return pb.ListRunsResponse(
            runs=[pb.Run(name=run, start_time=began[run] / 1e9) for run in sorted(began)]
        )

    def ListScalars(self, request: Any, context: Any) -> Any:
        return self._listed(request, context, pb.ListScalarsResponse, "scalars")

    def ListTensors(self, request: Any, context: Any) -> Any:
        return self._listed(request, context, pb.ListTensorsResponse, "histograms")

    def ReadScalars(self, request: Any, context: Any) -> Any:
        def filled(entry: Any, course: Course) -> None:
            entry.data.value.extend(course.values)

        return self._read(request, context, pb.ReadScalarsResponse, "scalars", filled)

    def ReadTensors(self, request: Any, context: Any) -> Any:
        def filled(entry: Any, course: Course) -> None:
            entry.data.value.extend(
                tensor_util.make_tensor_proto(buckets(summary)) for summary in course.values
            )

        return self._read(request, context, pb.ReadTensorsResponse, "histograms", filled)

    def ListBlobSequences(self, request: Any, context: Any) -> Any:
        return pb.ListBlobSequencesResponse()

    def ReadBlobSequences(self, request: Any, context: Any) -> Any:
        return pb.ReadBlobSequencesResponse()

    def _listed(self, request: Any, context: Any, kind_of_answer: Any, kind: Kind) -> Any:
        answer = kind_of_answer()
        if request.plugin_filter.plugin_name != kind:
            return answer
        runs, tags = _filters(request)
        found = _asked(context, self._board.listing).tags[kind]
        entries: dict[str, Any] = {}
        for (run, tag), listed in sorted(found.items()):
            if (runs is None or run in runs) and (tags is None or tag in tags):
                if run not in entries:
                    entries[run] = answer.runs.add(run_name=run)
                entry = entries[run].tags.add(tag_name=tag)
                entry.metadata.max_step = listed.step_max
                entry.metadata.max_wall_time = listed.time_max_s
                entry.metadata.summary_metadata.CopyFrom(_METADATA[kind])
        return answer

    def _read(
        self,
        request: Any,
        context: Any,
        kind_of_answer: Any,
        kind: Kind,
        filled: Callable[[Any, Course], None],
    ) -> Any:
        answer = kind_of_answer()
        if request.plugin_filter.plugin_name != kind:
            return answer
        runs, tags = _filters(request)
        most = request.downsample.num_points or _POINTS_DEFAULT
        found = _asked(context, lambda: dict(self._board.read(kind, runs, tags, most)))
        entries: dict[str, Any] = {}
        for (run, tag), course in found.items():
            if run not in entries:
                entries[run] = answer.runs.add(run_name=run)
            entry = entries[run].tags.add(tag_name=tag)
            entry.data.step.extend(course.steps)
            entry.data.wall_time.extend(course.times_s)
            filled(entry, course)
        return answer


def _filters(request: Any) -> tuple[set[str] | None, set[str] | None]:
    """(runs, tags), None where all are meant."""
    given = request.run_tag_filter
    runs = set(given.runs.names) if given.HasField("runs") else None
    return runs, set(given.tags.names) if given.HasField("tags") else None


def _asked(context: Any, ask: Callable[[], _Answer]) -> _Answer:
    """The answer, or an error that TensorBoard understands."""
    try:
        return ask()
    except RanklogError as error:
        wrong = isinstance(error, (BadInput, BadQuery))
        code = grpc.StatusCode.INVALID_ARGUMENT if wrong else grpc.StatusCode.UNAVAILABLE
        context.abort(code, str(error))
        raise


def buckets(summary: Mapping[str, Any]) -> Any:
    """F64[k, 3]: left end, right end, how many; out of the histogram, else out of the quantiles."""
    count, low, high = summary["count"], summary["min"], summary["max"]
    if not count or low is None or high is None:
        return np.zeros((0, 3))
    histogram = summary["histogram"]
    if histogram is not None:
        edges = np.array(histogram["edges"], np.float64)
        return np.column_stack([edges[:-1], edges[1:], np.array(histogram["counts"], np.float64)])
    known = sorted((float(q), value) for q, value in (summary["quantiles"] or {}).items())
    places = [(0.0, low), *((q, v) for q, v in known if 0 < q < 1), (1.0, high)]
    return np.array(
        [
            [float(left), float(right), (to - since) * count]
            for (since, left), (to, right) in pairwise(places)
            if math.isfinite(float(left)) and math.isfinite(float(right))
        ]
    )


def make_server(board: Board, port: int = 0) -> tuple[Any, int]:
    """(the gRPC server, not started, and its port), on loopback. Raises BadInput for a taken port."""
    server = grpc.server(
        futures.ThreadPoolExecutor(_THREADS, thread_name_prefix="ranklog-board"),
        options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)],
    )
    service.add_TensorBoardDataProviderServicer_to_server(Provider(board), server)
    try:
        bound = server.add_insecure_port(f"127.0.0.1:{port}")
    except RuntimeError as error:
        raise BadInput(f"port {port} can't be had", hint="--port 0 takes a free one") from error
    return server, int(bound)
