"""template.yaml as values: resources, routes, and what a role may do, as IAM would judge it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "template.yaml"
Template = dict[str, Any]


class _Loader(yaml.SafeLoader):
    """Reads `!Sub x` as {"Sub": x}."""


def _tagged(loader: _Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    if isinstance(node, yaml.ScalarNode):
        return {suffix: loader.construct_scalar(node)}
    if isinstance(node, yaml.SequenceNode):
        return {suffix: loader.construct_sequence(node, deep=True)}
    raise AssertionError(f"!{suffix} over a mapping")


_Loader.add_multi_constructor("!", _tagged)


@cache
def read_template() -> Template:
    loaded: Template = yaml.load(TEMPLATE.read_text(), Loader=_Loader)
    return loaded


def resources(template: Template, kind: str) -> dict[str, dict[str, Any]]:
    """Name -> properties of the resources of a kind."""
    return {
        name: resource.get("Properties", {})
        for name, resource in template["Resources"].items()
        if resource["Type"] == kind
    }


def functions(template: Template) -> dict[str, dict[str, Any]]:
    """Name without `Function` -> properties."""
    found = resources(template, "AWS::Serverless::Function")
    return {name.removesuffix("Function"): properties for name, properties in found.items()}


# --- routes -------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Route:
    """`key`: as API Gateway names it. `public`: without authorizer."""

    method: str
    path: str
    public: bool

    @property
    def key(self) -> str:
        return f"{self.method} {self.path}"

    def takes(self, method: str, path: str) -> bool:
        if self.path.endswith("{proxy+}"):
            return method == self.method and path.startswith(self.path.removesuffix("{proxy+}"))
        return (method, path) == (self.method, self.path)


def routes(template: Template) -> list[Route]:
    """Of the HTTP API, the ones that say most first, which is how API Gateway chooses."""
    found = []
    for event in functions(template)["Api"]["Events"].values():
        assert event["Type"] == "HttpApi"
        properties = event["Properties"]
        authorizer = properties.get("Auth", {}).get("Authorizer")
        assert authorizer in (None, "NONE")
        found.append(Route(properties["Method"], properties["Path"], authorizer == "NONE"))
    return sorted(found, key=lambda route: "{" in route.path)


# --- policies -----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Grain:
    """One action on one pattern of resources, of one statement."""

    sid: str
    effect: str
    action: str
    resource: str

    def covers(self, action: str, resource: str) -> bool:
        """As IAM matches: `*` is any text, slashes too."""
        pattern = re.escape(self.resource).replace(r"\*", ".*")
        return self.action == action and re.fullmatch(pattern, resource) is not None


def statements(template: Template, role: str) -> list[dict[str, Any]]:
    """What a role may do, its managed policies included, whatever their condition."""
    properties = template["Resources"][role]["Properties"]
    policies = [policy["PolicyDocument"] for policy in properties["Policies"]]
    for reference in properties.get("ManagedPolicyArns", ()):
        name = reference["If"][1]["Ref"] if "If" in reference else reference["Ref"]
        policies.append(template["Resources"][name]["Properties"]["PolicyDocument"])
    return [statement for policy in policies for statement in policy["Statement"]]


def grains(template: Template, role: str) -> Iterator[Grain]:
    """A role's statements, taken apart."""
    for statement in statements(template, role):
        for action in _listed(statement["Action"]):
            for resource in _listed(statement["Resource"]):
                yield Grain(statement["Sid"], statement["Effect"], action, _named(resource))


def allows(known: Iterable[Grain], action: str, resource: str) -> bool:
    """Whether IAM lets it: something allows it and nothing denies it."""
    fitting = {grain.effect for grain in known if grain.covers(action, resource)}
    return fitting == {"Allow"}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _named(resource: Any) -> str:
    """`<logical name>[/<pattern>]` of what a policy names."""
    if isinstance(resource, str):
        return resource
    if "GetAtt" in resource:
        return str(resource["GetAtt"]).removesuffix(".Arn")
    if "Sub" in resource:
        found = re.fullmatch(r"\$\{(\w+)\.Arn\}(.*)", resource["Sub"])
        return found[1] + found[2] if found else str(resource["Sub"])
    if "If" in resource:
        return _named(resource["If"][1])
    return str(resource["Ref"])
