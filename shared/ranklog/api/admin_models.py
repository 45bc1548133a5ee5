"""Bodies and parameters of administration: every member optional but what is named, unknown members refused."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from ranklog.api.models import Restrictions, Text
from ranklog.limits import QUARANTINE_REPLAY_MAX

Words = Annotated[str, Field(max_length=1024)]


class Acting(BaseModel):
    """Who acts, beside the key, and why: for the log of actions."""

    model_config = ConfigDict(extra="forbid", strict=True)

    who: Words = Field("", description="on whose behalf; the log names the key's id before it")
    why: Words = ""


class DeleteBody(Restrictions):
    """What is deleted: lines that match, or with a run and nothing else the launch whole."""

    who: Words = Field("", description="on whose behalf; the log names the key's id before it")
    why: Words = ""
    groups: bool = Field(False, description="with each match the rest of its group")
    dry_run: bool = Field(False, description="say what would be deleted, and delete nothing")


class DeleteAnswer(BaseModel):
    """Rows by stream; `tombstone` null: nothing was done."""

    deleted: list[dict[str, Any]]
    lines: int
    kind: str
    launches: list[str]
    tombstone: str | None
    completeness: dict[str, Any]
    report: dict[str, Any]


class AuditParameters(BaseModel):
    """Frames with rows of a run, or all of the tenant's."""

    model_config = ConfigDict(extra="forbid")

    run: Text | None = None
    all: bool = Field(False, description="verified frames as well")


class AuditAnswer(BaseModel):
    """What became of frames; `segments`: those that are not what was committed."""

    frames: list[dict[str, Any]]
    segments: list[dict[str, Any]]
    state: str
    totals: dict[str, int]
    bytes_read: int
    waiting_frames: int = Field(description="wait for the tenant's quota; counted up to 1,000")
    quarantined_frames: int = Field(description="are in quarantine; counted up to 1,000")


class ActionsAnswer(BaseModel):
    """The log of actions, oldest first."""

    actions: list[dict[str, Any]]


class UsageAnswer(BaseModel):
    """What is stored, and what came through the API in 24 hours."""

    runs: list[dict[str, Any]]
    objects: int
    stored_bytes: int
    stored_bytes_by_kind: dict[str, int]
    stored_bytes_by_day: dict[str, int]
    last_24h: dict[str, int]
    quotas: dict[str, int]


class RetentionBody(Acting):
    """A rule: lines of runs whose name fits are kept for so long."""

    run: Text = Field("*", description="a pattern of names, with * and ?")
    keep: Text = Field(description="90d, 36h; none: no rule of this pattern any more")


class ApplyBody(Acting):
    """Hide what is too old, remove what was hidden."""

    dry_run: bool = False


class RulesAnswer(BaseModel):
    """How long lines are kept; runs without a rule are kept for good."""

    rules: list[dict[str, Any]]


class AppliedAnswer(BaseModel):
    """What an apply did, or would do."""

    floors: dict[str, str]
    lines: int
    objects_removed: int
    pinned: int
    failed: list[dict[str, str]]
    dry_run: bool


class QuarantineParameters(BaseModel):
    """One record with what can be read of its header, or all."""

    model_config = ConfigDict(extra="forbid")

    id: Text | None = None


class QuarantineAnswer(BaseModel):
    """Records that could not be stored, with reason."""

    entries: list[dict[str, Any]]


class ReplayBody(BaseModel):
    """Which records; without `ids` all that wait."""

    model_config = ConfigDict(extra="forbid", strict=True)

    ids: Annotated[list[Text], Field(max_length=QUARANTINE_REPLAY_MAX)] = []
    who: Words = ""


class ReplayAnswer(BaseModel):
    """What became of each, and counts by state."""

    entries: list[dict[str, Any]]
    counts: dict[str, int]
    left: int
