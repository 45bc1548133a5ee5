"""What a Python program would let through: its interpreter, who configures logging, what it imports."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from ranklog.doctor.check import NOTE, OK, PROBLEM, Check
from ranklog.launch.command import torchrun_of

PROBE_S = 30.0
SCRIPT_BYTES_MAX = 4 * 1024 * 1024
LOGGING = ("loguru", "absl", "structlog", "opentelemetry", "sentry_sdk")
TRAINING = ("torch", "transformers", "lightning", "pytorch_lightning", "torchtitan", "megatron")
_CONFIGURES = {
    "basicConfig": "logging.basicConfig",
    "dictConfig": "logging.config.dictConfig",
    "fileConfig": "logging.config.fileConfig",
    "addHandler": "addHandler",
}
# Asks an interpreter, in the state in which it would begin a script.
_PROBE = """
import importlib.util, json, logging, sys
def there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except Exception:
        return False
root = logging.getLogger()
print(json.dumps({
    "version": sys.version.split()[0],
    "executable": sys.executable,
    "modules": [name for name in sys.argv[1].split(",") if there(name)],
    "handlers": [f"{type(h).__module__}.{type(h).__name__}" for h in root.handlers],
    "level": root.level,
}))
"""


@dataclass(slots=True)
class Script:
    """What a script's text says; line numbers of calls."""

    imports: set[str] = field(default_factory=set)
    inits: list[int] = field(default_factory=list)
    captures: bool = False  # init(capture="fd")
    configures: list[str] = field(default_factory=list)
    replaces_print: bool = False


def read_script(path: Path) -> Script | None:
    """None for what can't be read or parsed."""
    try:
        if path.stat().st_size > SCRIPT_BYTES_MAX:
            return None
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    script = Script()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            script.imports.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            script.imports.add(node.module.partition(".")[0])
        elif isinstance(node, ast.Call):
            _read_call(script, node)
        elif isinstance(node, ast.Assign):
            names = (ast.unparse(target) for target in node.targets)
            script.replaces_print |= any(n in ("print", "builtins.print") for n in names)
    return script


def _read_call(script: Script, call: ast.Call) -> None:
    name = ast.unparse(call.func)
    last = name.rpartition(".")[2]
    if name == "ranklog.init":
        script.inits.append(call.lineno)
        script.captures |= any(
            word.arg == "capture" and isinstance(word.value, ast.Constant) and word.value.value
            for word in call.keywords
        )
    elif last in _CONFIGURES:
        script.configures.append(f"{_CONFIGURES[last]} (line {call.lineno})")


def interpreter_of(words: Sequence[str]) -> str:
    """The Python that would run the script: named, or that of torchrun, or ours."""
    torchrun = torchrun_of(words)
    named = torchrun.interpreter if torchrun else next((w for w in words if _is_python(w)), None)
    if named:
        return named
    starter = shutil.which(words[0]) if words else None
    if torchrun and starter:
        try:
            with open(starter, "rb") as file:
                first = file.readline().decode("utf-8", "replace").strip()
        except OSError:
            first = ""
        if first.startswith("#!") and "python" in first:
            return first[2:].split()[0]
    return sys.executable


def _is_python(word: str) -> bool:
    return PurePath(word).name.startswith("python") and not word.endswith(".py")


def probe(interpreter: str) -> dict[str, Any] | str:
    """What an interpreter says of itself, or why it says nothing."""
    names = ",".join(("ranklog", "msgpack", *LOGGING, *TRAINING))
    try:
        done = subprocess.run(
            [interpreter, "-c", _PROBE, names],
            capture_output=True,
            text=True,
            timeout=PROBE_S,
            stdin=subprocess.DEVNULL,
            check=True,
        )
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        return f"{error}"[:200]
    return found


def check_python(words: Sequence[str]) -> list[Check]:
    """Interpreter, logging's configuration, other libraries, and what is captured of the script."""
    interpreter = interpreter_of(words)
    found = probe(interpreter)
    if isinstance(found, str):
        do = "name the interpreter by its path, or activate its environment"
        return [Check("python", PROBLEM, f"{interpreter} does not run: {found}", do)]
    paths = [Path(word) for word in words if word.endswith(".py")]
    script = read_script(paths[0]) if paths else None
    if paths and script is None:
        do = "check its name; from here on only the interpreter is looked at"
        unread = [Check("script", PROBLEM, f"{paths[0]} can't be read as Python", do)]
    else:
        unread = []
    return [
        _check_interpreter(found),
        *unread,
        _check_logging(found, script),
        _check_libraries(found, script),
        *_check_capture(words, script, paths),
    ]


def _check_interpreter(found: dict[str, Any]) -> Check:
    version = tuple(int(part) for part in found["version"].split(".")[:2] if part.isdigit())
    facts = (("executable", found["executable"]), ("version", found["version"]))
    says = f"Python {found['version']} ({found['executable']})"
    if version < (3, 10):
        return Check("python", PROBLEM, f"{says} is too old", "use Python 3.10 or newer", facts)
    if "ranklog" not in found["modules"] or "msgpack" not in found["modules"]:
        return Check(
            "python",
            PROBLEM,
            f"{says} has no ranklog: what it prints can be captured, what it logs loses its levels",
            f"{found['executable']} -m pip install ranklog",
            facts,
        )
    return Check("python", OK, says, facts=facts)


def _check_logging(found: dict[str, Any], script: Script | None) -> Check:
    """Who would configure logging, and whether our handler meets it."""
    by = [*(script.configures if script else ()), *found["handlers"]]
    facts = (("configured_by", by), ("root_level", found["level"]))
    if script is None:
        says = "nobody has configured logging when the interpreter starts"
        if found["handlers"]:
            says = f"{', '.join(found['handlers'])} on the root logger when the interpreter starts"
        return Check(
            "logging", OK, says, "give the script too: ranklog doctor -- python x.py", facts
        )
    if not by:
        says = "the script configures none: ranklog.init sets the root logger's level to INFO"
        return Check("logging", OK, says, facts=facts)
    if any("dictConfig" in name or "fileConfig" in name for name in by):
        return Check(
            "logging",
            NOTE,
            f"configured by {', '.join(by)}: it removes handlers that are there before it",
            "call ranklog.init() after it, or add ranklog.handler() to its handlers",
            facts,
        )
    return Check("logging", OK, f"configured by {', '.join(by)}; ours is added beside", facts=facts)


def _check_libraries(found: dict[str, Any], script: Script | None) -> Check:
    here = [name for name in (*LOGGING, *TRAINING) if name in found["modules"]]
    used = sorted(script.imports & set(here)) if script else []
    facts = (("installed", here), ("imported", used))
    says = f"installed: {', '.join(here) or 'none of torch, loguru, absl, structlog'}"
    if used:
        says += f"; the script imports {', '.join(used)}"
    hints = []
    if "loguru" in used:
        hints.append("loguru does not pass through logging: logger.add(ranklog.handler())")
    if "structlog" in used:
        hints.append("structlog: let it log through logging (structlog.stdlib.LoggerFactory)")
    if "absl" in used:
        hints.append("absl takes the root logger over: call ranklog.init() after app.run begins")
    return Check(
        "libraries", NOTE if hints else OK, says, "; ".join(hints) or "nothing to do", facts
    )


def _check_capture(
    words: Sequence[str], script: Script | None, paths: Sequence[Path]
) -> list[Check]:
    if not paths:
        says = (
            "with ranklog run: fd 1 and 2 of the program; with init: logging, warnings, exceptions"
        )
        return [Check("capture", OK, says, "give the command to look at: ranklog doctor -- CMD")]
    checks = []
    assert words
    facts = (("init_lines", script.inits if script else []),)
    if script and script.inits:
        where = f"{paths[0].name}:{script.inits[0]}"
        says = (
            f"ranklog.init at {where}: logging, warnings and exceptions with levels and call sites"
        )
        says += "; print, C++ and crash reports too" if script.captures else ""
        do = (
            "nothing to do"
            if script.captures
            else "for print and C++ too: init(capture='fd'), or ranklog run"
        )
        checks.append(Check("capture", OK, says, do, facts))
    else:
        says = f"{paths[0].name} calls no ranklog.init: only what it prints, without levels, by ranklog run"
        do = "call ranklog.init() at its start for levels, call sites, iterations and metadata"
        checks.append(Check("capture", NOTE, says, do, facts))
    if script and script.replaces_print:
        says = "the script replaces print: what it prints is what the replacement prints"
        checks.append(Check("capture", NOTE, says, "log through logging for what must not be lost"))
    return checks
