"""Small questions about query trees."""

from __future__ import annotations

from collections.abc import Iterable

from ranklog.model.query import And, Everything, Expr, Field, Near, Not, Or, Spike


def children(expr: Expr) -> tuple[Expr, ...]:
    """The trees directly inside."""
    if isinstance(expr, (And, Or)):
        return expr.items
    if isinstance(expr, Not):
        return (expr.item,)
    if isinstance(expr, Near):
        return (expr.query,)
    if isinstance(expr, Spike):
        return (expr.where,)
    return ()


def nesting(expr: Expr) -> int:
    """Levels of operators and functions above the deepest term."""
    inner = children(expr)
    return 1 + max(map(nesting, inner)) if inner else 0


def only_fields(expr: Expr) -> bool:
    """Whether no term looks at text."""
    inner = children(expr)
    return all(map(only_fields, inner)) if inner else isinstance(expr, (Field, Everything))


def all_of(items: Iterable[Expr]) -> Expr:
    """AND in its shortest form: nested ones opened, Everything left out."""
    flat: list[Expr] = []
    for item in items:
        flat.extend(item.items if isinstance(item, And) else [item])
    kept = [item for item in flat if not isinstance(item, Everything)]
    if not kept:
        return Everything()
    return kept[0] if len(kept) == 1 else And(tuple(kept))


def any_of(items: Iterable[Expr]) -> Expr:
    """OR with nested ones opened."""
    flat: list[Expr] = []
    for item in items:
        flat.extend(item.items if isinstance(item, Or) else [item])
    return flat[0] if len(flat) == 1 else Or(tuple(flat))
