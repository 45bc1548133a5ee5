"""Which SQL is let through: one SELECT over the views, by its syntax tree, before it is bound or run.

DuckDB's own settings keep a statement from files and network. This keeps it from the rest: what EXPLAIN
ANALYZE would execute, functions that read the process, its settings, its memory or its clock, and other
tables than the two views. Table functions are a list of those that only compute: what a later DuckDB adds
is refused until it is known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import duckdb

from ranklog import limits
from ranklog.errors import BadQuery, TooLarge

VIEWS = frozenset(["lines", "points"])
TABLE_FUNCTIONS = frozenset(
    "range generate_series unnest repeat repeat_row json_each json_tree histogram histogram_values "
    "icu_calendar_names pg_timezone_names".split()
)
# Functions of a row that wait, write, or tell of the process and not of lines.
REFUSED_FUNCTIONS = frozenset(
    "sleep_ms pg_sleep write_log getenv getvariable current_setting current_query setseed nextval currval "
    "setval json_execute_serialized_sql json_deserialize_sql parse_duckdb_log_message".split()
)
# Functions whose second argument says how large their value is. DuckDB makes it in memory that it does not
# count and can't be interrupted meanwhile.
GROWING_FUNCTIONS = frozenset(
    "repeat lpad rpad bitstring list_resize array_resize range generate_series".split()
)
GROWING_CALLS_MAX = 2
GROWING_SIZE_MAX = 10_000
DEPTH_MAX = 200
_HINT = "DuckDB's SQL over the views lines and points"
_SIZE_HINT = f"at most {GROWING_CALLS_MAX}, each with a number up to {GROWING_SIZE_MAX}"
_BRACKETS = re.compile(r"[(\[{)\]}]")
_EXPLAIN = re.compile(r"\s*EXPLAIN\s+(?:ANALYZE\s+)?(?=[A-Z(])", re.IGNORECASE)


def check_statement(connection: duckdb.DuckDBPyConnection, statement: str) -> None:
    """Raises BadQuery, TooLarge for what is not one SELECT over the views."""
    size = len(statement.encode("utf-8", "surrogatepass"))
    if size > limits.SQL_BYTES_MAX:
        raise TooLarge(f"a statement of {size} bytes, limit {limits.SQL_BYTES_MAX}")
    _check_depth(statement)
    found = connection.extract_statements(statement)
    if len(found) != 1:
        raise BadQuery(f"{len(found)} statements", hint="write one SELECT")
    kind = found[0].type.name
    explained = _EXPLAIN.match(statement) if kind == "EXPLAIN" else None
    if kind != "SELECT" and not explained:
        raise BadQuery(f"{kind} does not read", hint="this is read-only: write a SELECT")
    tree = _tree(connection, statement[explained.end() :] if explained else statement)
    nodes = list(_nodes(tree))
    own = {entry["key"].lower() for node in nodes for entry in _tables_of(node)}
    rows_of = {id(node.get("function")) for node in nodes if node.get("type") == "TABLE_FUNCTION"}
    growing = 0
    for node in nodes:
        _check_node(node, own)
        if (
            str(node.get("function_name", "")).lower() in GROWING_FUNCTIONS
            and id(node) not in rows_of
        ):
            growing += 1
            _check_size(node)
    if growing > GROWING_CALLS_MAX:
        raise BadQuery(f"{growing} calls of functions that make large values", hint=_SIZE_HINT)


def _check_depth(statement: str) -> None:
    """DuckDB's parser takes seconds and gigabytes for some thousand brackets that nobody closes, and no limit
    holds meanwhile. Those within text count, too: what text is, the parser would have to say."""
    depth = 0
    for bracket in _BRACKETS.findall(statement):
        depth = depth + 1 if bracket in "([{" else max(depth - 1, 0)
        if depth > DEPTH_MAX:
            raise BadQuery(f"brackets are nested over {DEPTH_MAX} deep", hint=_HINT)


def _tree(connection: duckdb.DuckDBPyConnection, statement: str) -> Any:
    try:
        [[text]] = connection.execute(
            "SELECT json_serialize_sql(?::VARCHAR)", [statement]
        ).fetchall()
        tree = json.loads(text)
    except (RecursionError, UnicodeEncodeError) as error:
        raise BadQuery("the statement is nested too deeply, or is no text", hint=_HINT) from error
    if tree.get("error"):
        message = str(tree.get("error_message", "it can't be read"))
        if "Only SELECT" in message:
            message = "this does not read"
        raise BadQuery(message.splitlines()[0], hint=_HINT)
    return tree


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every object of the tree. Without recursion: its depth is the user's."""
    left = [tree]
    while left:
        item = left.pop()
        if isinstance(item, dict):
            yield item
            left.extend(item.values())
        elif isinstance(item, list):
            left.extend(item)


def _tables_of(node: dict[str, Any]) -> list[dict[str, Any]]:
    """What WITH names in this node."""
    named = node.get("cte_map")
    return named.get("map", []) if isinstance(named, dict) else []


def _check_node(node: dict[str, Any], own: set[str]) -> None:
    kind = node.get("type")
    if kind == "BASE_TABLE":
        table = str(node.get("table_name", "")).lower()
        if table not in VIEWS and table not in own:
            raise BadQuery(
                f"there is no table {table[:80]!r}", hint="the views are lines and points"
            )
    elif kind == "TABLE_FUNCTION":
        name = str((node.get("function") or {}).get("function_name", "")).lower()
        if name not in TABLE_FUNCTIONS:
            raise BadQuery(f"{name[:80]} can't be read from", hint="the views are lines and points")
    elif str(node.get("function_name", "")).lower() in REFUSED_FUNCTIONS:
        raise BadQuery(f"there is no function {node['function_name']}", hint=_HINT)


def _check_size(node: dict[str, Any]) -> None:
    arguments = node.get("arguments") or []
    sizes = [item.get("expression") or {} for item in arguments[1:2] or arguments[:1]]
    texts = [str((size.get("literal") or {}).get("text", "")) for size in sizes]
    if not texts or not all(t.isdecimal() and int(t) <= GROWING_SIZE_MAX for t in texts):
        raise BadQuery(f"{node['function_name']} of no small number", hint=_SIZE_HINT)
