"""What a run runs on: code, packages, libraries, container. Slow to find out, so a helper process does.

Reads files and asks git; imports nothing of the job's (torch least of all) and needs no GPU.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.machinery
import importlib.metadata
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ranklog.produce.attach import FILE_HASH_BYTES_MAX, hash_file
from ranklog.produce.secrets import mask_text

GIT_SECONDS_MAX = 10.0
# A diff of more is hashed as far as here.
DIFF_BYTES_MAX = 64 * 1024 * 1024
# Files that were given, of at most this size and one of these kinds, are kept whole.
FILE_TEXT_BYTES_MAX = 64 * 1024
CONFIG_SUFFIXES = {".json", ".toml", ".yaml", ".yml", ".ini", ".cfg", ".conf", ".gin", ".txt"}
_LIBRARIES = re.compile(
    r"(torch\w*|nvidia-\w+(-cu\d+)?|jax\w*|flax|tensorflow|numpy|triton|transformers|accelerate"
    r"|deepspeed|lightning|pytorch-lightning|megatron[-_]core|transformer[-_]engine|flash[-_]attn"
    r"|apex|xformers|torchtitan|primus|ranklog)$"
)
_CONTAINER_VARIABLES = (
    "RANKLOG_IMAGE",
    "CONTAINER_IMAGE",
    "IMAGE_DIGEST",
    "SLURM_CONTAINER",
    "APPTAINER_CONTAINER",
    "SINGULARITY_CONTAINER",
    "ENROOT_ROOTFS",
    "NVIDIA_BUILD_ID",
)


def git_state(folder: Path) -> dict[str, Any] | None:
    """Commit, branch, remote, and whether files differ from it; None where there is no repository."""
    root = _git(folder, "rev-parse", "--show-toplevel")
    if root is None:
        return None
    commit = _git(folder, "rev-parse", "HEAD")
    changed = _git(folder, "status", "--porcelain", "--untracked-files=normal")
    state: dict[str, Any] = {
        "root": root,
        "commit": commit,
        "branch": _git(folder, "rev-parse", "--abbrev-ref", "HEAD"),
        "remote": mask_text(_git(folder, "config", "--get", "remote.origin.url") or "") or None,
        "dirty": None if changed is None else int(bool(changed)),
    }
    if changed:
        state["dirty_hash"] = _dirty_hash(Path(root), changed)
        state["changed_files"] = [line[3:] for line in changed.splitlines()[:100]]
    return {key: value for key, value in state.items() if value is not None}


def _git(folder: Path, *words: str) -> str | None:
    # Optional locks: `git status` must not write to a repository that others work in.
    command = ["git", "--no-optional-locks", "-C", str(folder), *words]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=GIT_SECONDS_MAX,
            stdin=subprocess.DEVNULL,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace").rstrip("\n")


def _dirty_hash(root: Path, changed: str) -> str:
    """Of what differs from the commit, and of the names of untracked files."""
    digest = hashlib.blake2b(changed.encode(), digest_size=16)
    command = ["git", "--no-optional-locks", "-C", str(root), "diff", "HEAD", "--binary"]
    with (
        contextlib.suppress(OSError),
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        ) as process,
    ):
        assert process.stdout is not None
        digest.update(process.stdout.read(DIFF_BYTES_MAX))
        process.kill()
    return digest.hexdigest()


def packages(paths: Sequence[str] | None = None) -> dict[str, str]:
    """Distribution -> version of all that can be imported from these paths."""
    found: dict[str, str] = {}
    for distribution in importlib.metadata.distributions(path=list(paths or sys.path)):
        try:
            name, version = distribution.metadata["Name"], distribution.version
        except Exception:  # half an installation
            continue
        if name and version:
            found.setdefault(name.lower(), version)
    return dict(sorted(found.items()))


def libraries(found: Mapping[str, str], paths: Sequence[str] | None = None) -> dict[str, str]:
    """Versions that matter to training, CUDA's and NCCL's as torch was built with among them."""
    chosen = {name: version for name, version in found.items() if _LIBRARIES.fullmatch(name)}
    spec = importlib.machinery.PathFinder.find_spec("torch", list(paths or sys.path))
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        with contextlib.suppress(OSError):
            text = (Path(folder) / "version.py").read_text()
            for name in ("cuda", "hip", "git_version"):
                value = re.search(rf"^{name}\b.*?=\s*'([^']+)'", text, re.MULTILINE)
                if value:
                    chosen[f"torch_{name}" if name == "git_version" else name] = value[1]
    for name, version in found.items():
        if name.startswith(("nvidia-nccl", "nvidia-cudnn")):
            chosen[name.split("-")[1]] = version
    return dict(sorted(chosen.items()))


def container(environ: Mapping[str, str], root: Path = Path("/")) -> dict[str, str]:
    """Image and id of the container, as far as it can be seen from inside; {} outside of one."""
    known = {name: environ[name] for name in _CONTAINER_VARIABLES if environ.get(name)}
    shown: dict[str, str] = {}
    if known:
        shown["image"] = next(iter(known.values()))
        digest = next((v for v in known.values() if re.search(r"sha256:[0-9a-f]{64}", v)), None)
        if digest:
            shown["digest"] = digest[digest.index("sha256:") :]
    with contextlib.suppress(OSError):
        mounts = (root / "proc/self/mountinfo").read_text()
        found = re.search(r"/(?:containers|sandboxes|overlay-containers)/([0-9a-f]{64})/", mounts)
        if found:
            shown["id"] = found[1]
    return shown


def submitted(paths: Sequence[str]) -> list[dict[str, Any]]:
    """Files that were given to the run, with their hash; configuration also with its text."""
    found = []
    for name in dict.fromkeys(paths):
        path = Path(name)
        try:
            size = path.stat().st_size
            entry: dict[str, Any] = {"path": str(path.absolute()), "bytes": size}
            if path.is_file() and size <= FILE_HASH_BYTES_MAX:
                entry["blake2b"] = hash_file(path)
                if path.suffix.lower() in CONFIG_SUFFIXES and size <= FILE_TEXT_BYTES_MAX:
                    entry["text"] = mask_text(path.read_text(errors="replace"))
        except OSError as error:
            entry = {"path": str(path), "error": os.strerror(error.errno or 0)}
        found.append(entry)
    return found
