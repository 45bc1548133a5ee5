"""docs/deploy: what is applied as it stands is valid, and its commands are ours."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from ranklog.cli.arguments import command_of, parse

DEPLOY = Path(__file__).parents[2] / "docs" / "deploy"
KUBERNETES = "1.33"


def documents() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            yield f"{path.name}:{document['kind']}:{document['metadata']['name']}", document


DOCUMENTS = dict(documents())


def containers(document: dict[str, Any]) -> list[dict[str, Any]]:
    spec = document.get("spec", {}).get("template", {}).get("spec", {})
    return [*spec.get("initContainers", []), *spec.get("containers", [])]


def commands() -> Iterator[tuple[str, list[str]]]:
    for name, document in DOCUMENTS.items():
        for one in containers(document):
            words = [*one.get("command", ["ranklog"]), *one.get("args", [])]
            if words[0] == "ranklog":
                yield f"{name}:{one['name']}", words[1:]
    for path in sorted((DEPLOY / "systemd").glob("*.service")):
        text = path.read_text().replace("\\\n", " ")
        for line in re.findall(r"^ExecStart=(.+)$", text, re.M):
            yield path.name, shlex.split(line)[1:]


COMMANDS = dict(commands())


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_manifest_is_valid(name: str) -> None:
    kubernetes_validate.validate(DOCUMENTS[name], KUBERNETES, strict=True)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_understood(name: str) -> None:
    words = COMMANDS[name]
    ours = (
        words[1 : words.index("--")] if "--" in words else words[1:]
    )  # run: the rest is the job's
    parse(command_of(words[0]), ours)  # raises BadInput for an option that is none


def test_every_kind_of_deployment_is_there() -> None:
    assert {name.partition(":")[0] for name in COMMANDS} == {
        "server.yaml",
        "job-sidecar.yaml",
        "agent-daemonset.yaml",
        "ranklog.service",
        "ranklog-agent.service",
    }


def test_a_sidecar_shares_what_the_agent_needs_with_the_trainer() -> None:
    document = DOCUMENTS["job-sidecar.yaml:Job:llama-8b"]
    sidecar, trainer = containers(document)
    assert document["spec"]["template"]["spec"]["shareProcessNamespace"] is True
    assert sidecar["restartPolicy"] == "Always" and "--stay" in sidecar["args"]
    assert sidecar["env"] == trainer["env"]
    assert sidecar["volumeMounts"] == trainer["volumeMounts"]


def test_what_others_can_reach_has_keys_and_tls() -> None:
    served = {name: words for name, words in COMMANDS.items() if "serve" in words}
    reachable = [" ".join(words) for words in served.values() if any("0.0.0.0" in w for w in words)]
    assert len(reachable) == 2
    for words in reachable:
        assert all(option in words for option in ("--keys", "--tls-cert", "--tls-key"))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
@pytest.mark.parametrize("unit", sorted(path.name for path in (DEPLOY / "systemd").iterdir()))
def test_a_unit_is_valid(unit: str, tmp_path: Path) -> None:
    text = (DEPLOY / "systemd" / unit).read_text().replace("/opt/ranklog/bin/ranklog", "/bin/true")
    (tmp_path / unit).write_text(text)
    command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert unit not in done.stderr and done.returncode == 0, done.stderr
