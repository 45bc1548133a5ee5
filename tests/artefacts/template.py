"""A template's functions with the values that CloudFormation would give them, from the template itself.

Of CloudFormation's language as much as our template uses: Ref, Sub, GetAtt, FindInMap, Join, If, Equals, Not,
And, Or.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

REGION = "eu-central-1"
ACCOUNT = "123456789012"
_PSEUDO = {
    "AWS::Region": REGION,
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": "aws",
    "AWS::URLSuffix": "amazonaws.com",
    "AWS::StackName": "ranklog",
}
_ARNS = {
    "AWS::Serverless::Function": "lambda:{region}:{account}:function:{name}",
    "AWS::Kinesis::Stream": "kinesis:{region}:{account}:stream/{name}",
    "AWS::SQS::Queue": "sqs:{region}:{account}:{name}",
    "AWS::S3::Bucket": "s3:::{name}",
}
_NONE = object()  # AWS::NoValue


@dataclass(frozen=True, slots=True)
class Function:
    """One function: where its code and its layers were built to, and how it is run."""

    name: str
    folder: Path
    layers: tuple[Path, ...]
    handler: str
    timeout_s: float
    memory_mb: int
    architecture: str
    environment: Mapping[str, str]
    events: Mapping[str, Any] = field(default_factory=dict)

    @property
    def arn(self) -> str:
        """As `Fn::GetAtt` says it."""
        return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{self.name}"


class Template:
    """A template of SAM in `folder`. `physical`: names of resources, where they are not the logical ones;
    `refs`: what Ref says of a resource, where it is not its name (a queue's address)."""

    def __init__(
        self,
        path: Path,
        parameters: Mapping[str, Any] | None = None,
        physical: Mapping[str, str] | None = None,
        refs: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = path.parent
        self._body = read_template(path)
        defaults = {n: p.get("Default") for n, p in self._body.get("Parameters", {}).items()}
        self._parameters = defaults | dict(parameters or {})
        self._physical = dict(physical or {})
        self._refs = dict(refs or {})

    def resources(self, kind: str) -> dict[str, dict[str, Any]]:
        """Logical name -> properties, of the resources of a kind whose condition holds."""
        found = {}
        for name, resource in self._body["Resources"].items():
            condition = resource.get("Condition")
            if resource["Type"] == kind and (condition is None or self._condition(condition)):
                found[name] = self.value(resource.get("Properties", {}))
        return found

    @property
    def parameters(self) -> Mapping[str, Any]:
        """By name; None where nothing is given."""
        return self._parameters

    def names(self, kind: str) -> list[str]:
        """Logical names of the resources of a kind."""
        return [name for name, each in self._body["Resources"].items() if each["Type"] == kind]

    def functions(self) -> dict[str, Function]:
        """All functions by their logical names."""
        shared = self.value(self._body.get("Globals", {}).get("Function", {}))
        built = self.resources("AWS::Serverless::Function")
        return {name: self._function(name, shared, own) for name, own in built.items()}

    def _function(self, name: str, shared: dict[str, Any], own: dict[str, Any]) -> Function:
        both = {**shared, **own}
        variables = [each.get("Environment", {}).get("Variables", {}) for each in (shared, own)]
        layers = self._body["Resources"]
        return Function(
            name=name,
            folder=self.folder / both["CodeUri"],
            layers=tuple(
                self.folder / layers[layer]["Properties"]["ContentUri"]
                for layer in both.get("Layers", ())
            ),
            handler=both["Handler"],
            timeout_s=float(both.get("Timeout", 3)),
            memory_mb=int(both.get("MemorySize", 128)),
            architecture=str(both.get("Architectures", ["x86_64"])[0]),
            environment={k: _text(v) for k, v in (variables[0] | variables[1]).items()},
            events=both.get("Events", {}),
        )

    def value(self, item: Any) -> Any:
        """An expression's value; members that are AWS::NoValue are left out."""
        if isinstance(item, list):
            return [found for each in item if (found := self.value(each)) is not _NONE]
        if not isinstance(item, dict):
            return item
        if len(item) == 1:
            ((name, argument),) = item.items()
            if name in ("Ref", "Condition") or name.startswith("Fn::"):
                return self._call(name.removeprefix("Fn::"), argument)
        values = {name: self.value(each) for name, each in item.items()}
        return {name: found for name, found in values.items() if found is not _NONE}

    def _call(self, name: str, argument: Any) -> Any:
        match name:
            case "Ref":
                return self._ref(argument)
            case "GetAtt":
                resource, _, attribute = (
                    argument.partition(".")
                    if isinstance(argument, str)
                    else (argument[0], "", argument[1])
                )
                return self._attribute(resource, attribute)
            case "Sub":
                return self._sub(argument)
            case "Join":
                return argument[0].join(_text(each) for each in self.value(argument[1]))
            case "If":
                return self.value(argument[1] if self._condition(argument[0]) else argument[2])
            case "Condition":
                return self._condition(argument)
            case "Equals":
                left, right = self.value(argument)
                return _text(left) == _text(right)
            case "FindInMap":
                table, row, column = self.value(argument)
                return self._body["Mappings"][table][_text(row)][column]
            case "Not":
                return not self.value(argument[0])
            case "And" | "Or":
                return (all if name == "And" else any)(self.value(argument))
            case _:
                raise ValueError(f"Fn::{name} is not read here")

    def _condition(self, name: str) -> bool:
        return bool(self.value(self._body["Conditions"][name]))

    def _ref(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return _NONE
        if name in _PSEUDO:
            return _PSEUDO[name]
        if name in self._parameters:
            return self._parameters[name]
        # A layer is one by its logical name: where it lies is what is asked.
        return self._refs.get(name) or self._physical.get(name, name)

    def _attribute(self, resource: str, attribute: str) -> str:
        name = self._physical.get(resource, resource)
        kind = self._body["Resources"][resource]["Type"]
        if attribute == "Arn" and kind in _ARNS:
            return "arn:aws:" + _ARNS[kind].format(region=REGION, account=ACCOUNT, name=name)
        return name if attribute.endswith("Name") else f"{name}.{attribute}"

    def _sub(self, argument: Any) -> str:
        text, given = (argument, {}) if isinstance(argument, str) else (argument[0], argument[1])

        def replaced(match: re.Match[str]) -> str:
            name = match[1]
            if name.startswith("!"):
                return "${" + name[1:] + "}"
            if name in given:
                return _text(self.value(given[name]))
            resource, dot, attribute = name.partition(".")
            return _text(self._attribute(resource, attribute) if dot else self._ref(name))

        return re.sub(r"\$\{([^}]+)\}", replaced, text)


def read_template(path: Path) -> dict[str, Any]:
    """A template with its short tags written out: `!Sub x` is {"Fn::Sub": x}."""
    loaded: dict[str, Any] = yaml.load(path.read_text(), Loader=_Loader)
    return loaded


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    pass


def _tagged(loader: _Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    name = suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}"
    if isinstance(node, yaml.ScalarNode):
        return {name: loader.construct_scalar(node)}
    assert isinstance(node, yaml.SequenceNode)
    return {name: loader.construct_sequence(node, deep=True)}


_Loader.add_multi_constructor("!", _tagged)


def _text(value: Any) -> str:
    """As CloudFormation renders it into a string."""
    return str(value).lower() if isinstance(value, bool) else str(value)
