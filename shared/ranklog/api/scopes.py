"""The scope that each route needs. A route that is missing here can't be built: see Resolver."""

from __future__ import annotations

from ranklog.access.grant import ADMIN, READ, WRITE

# What anyone may ask, and the scopes of the rest.
PUBLIC = frozenset([("GET", "/v1/health"), ("GET", "/openapi.json")])
SCOPE_OF: dict[tuple[str, str], str] = {
    ("POST", "/v1/search"): READ,
    ("POST", "/v1/count"): READ,
    ("POST", "/v1/series"): READ,
    ("POST", "/v1/compare"): READ,
    ("POST", "/v1/missing"): READ,
    ("POST", "/v1/outliers"): READ,
    ("POST", "/v1/triage"): READ,
    ("POST", "/v1/stacks"): READ,
    ("POST", "/v1/export"): READ,
    ("GET", "/v1/runs"): READ,
    ("GET", "/v1/runs/<run>/streams"): READ,
    ("GET", "/v1/callsites"): READ,
    ("GET", "/v1/patterns"): READ,
    ("GET", "/v1/tail"): READ,
    ("GET", "/v1/slo"): READ,
    ("POST", "/v1/frames"): WRITE,
    ("GET", "/v1/audit"): READ,
    ("GET", "/v1/usage"): READ,
    ("GET", "/v1/retention"): READ,
    ("POST", "/v1/retention"): ADMIN,
    ("POST", "/v1/retention/apply"): ADMIN,
    ("POST", "/v1/delete"): ADMIN,
    ("GET", "/v1/actions"): ADMIN,
    ("GET", "/v1/quarantine"): ADMIN,
    ("POST", "/v1/quarantine/replay"): ADMIN,
}
