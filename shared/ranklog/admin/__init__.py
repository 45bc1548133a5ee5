"""What administrators of a tenant do, over a store or over an HTTP API: the same calls, the same answers."""

from __future__ import annotations

from ranklog.admin.admin import Admin as Admin
from ranklog.admin.admin import open_admin as open_admin
