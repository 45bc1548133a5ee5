"""What is an option and what is query text."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranklog.cli.arguments import command_of, parse, parser_of, query_text, reference
from ranklog.cli.commands import COMMANDS
from ranklog.cli.flags import ALL
from ranklog.errors import BadInput

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], ""),
        (["level>=ERROR"], "level>=ERROR"),
        (["-call_site:trainer.py:88", "--count"], "-call_site:trainer.py:88"),
        (["loss", "-spike", "rank:3"], "loss -spike rank:3"),
        (["--run", "r", "a", "--limit=5", "b"], "a b"),
        (["--", "--count", "-h"], "--count -h"),
        (["a", "--", "b", "--", "c"], "a b -- c"),
        (["--counter"], "--counter"),
        (["--count=3"], "--count=3"),
        (["--limi", "3"], "--limi 3"),
        (["-inf"], "-inf"),
        (["-"], "-"),
    ],
)
def test_what_is_no_known_option_is_query_text(words: list[str], text: str) -> None:
    assert query_text(parse(command_of("search"), words)) == text


def test_options_have_their_values_wherever_they_stand() -> None:
    found = parse(
        command_of("search"),
        ["x", "--rank", "0-7", "-y", "--iteration", "..5", "--limit", "0", "--every", "10s"],
    )
    assert (found.rank, found.iteration, found.limit, found.every) == ("0-7", "..5", 0, "10s")
    assert query_text(found) == "x -y"


@pytest.mark.parametrize(
    ("words", "pin", "text"),
    [
        (["loss"], None, "loss"),
        (["--pin", "loss"], True, "loss"),
        (["loss", "--pin"], True, "loss"),
        (["--pin", "pin-0123456789abcdef"], "pin-0123456789abcdef", ""),
        (["--pin=pin-0123456789abcdef"], "pin-0123456789abcdef", ""),
        (["--pin", "--limit", "3"], True, ""),
    ],
)
def test_a_value_that_may_be_left_out_is_told_by_its_form(
    words: list[str], pin: object, text: str
) -> None:
    found = parse(command_of("search"), words)
    assert (found.pin, query_text(found)) == (pin, text)


def test_a_value_may_begin_with_a_dash() -> None:
    assert parse(command_of("search"), ["--cursor", "-abc"]).cursor == "-abc"


@pytest.mark.parametrize(
    ("command", "words", "found"),
    [
        ("quarantine", ["show", "--store", "s", "ID"], ("show", ["ID"])),
        ("quarantine", ["--store", "s", "list"], ("list", [])),
        ("keys", ["require", "--store", "s", "on"], ("require", ["on"])),
        ("keys", ["revoke", "a", "--store", "s", "b"], ("revoke", ["a", "b"])),
    ],
)
def test_an_option_may_stand_between_an_action_and_its_words(
    command: str, words: list[str], found: tuple[str, list[str]]
) -> None:
    parsed = parse(command_of(command), words)
    assert (parsed.action_words, parsed.id_words, parsed.store) == (*found, "s")


def test_what_stands_behind_two_dashes_keeps_its_own() -> None:
    parsed = parse(command_of("run"), ["--run", "r", "--", "a", "--run", "x", "--", "-b"])
    assert (parsed.run, parsed.cmd_words) == ("r", ["a", "--run", "x", "--", "-b"])


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [
        ("search", ["--limit"], "--limit needs a value"),
        ("search", ["--limit", "-3"], "argument --limit"),
        ("search", ["--order", "sideways"], "argument --order"),
        ("streams", ["--nonsense"], "unrecognized arguments"),
        ("import", ["logs", "--ru", "x"], "unrecognized arguments"),
    ],
)
def test_what_does_not_parse_is_bad_input(command: str, words: list[str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        parse(command_of(command), words)


def test_an_unknown_command_names_the_nearest() -> None:
    with pytest.raises(BadInput, match="no command 'serach'") as caught:
        command_of("serach")
    assert caught.value.hint == "did you mean search?"


def test_every_option_belongs_to_a_command_and_is_defined_once_per_group() -> None:
    used = {flag for command in COMMANDS for flag in command.flags}
    defined = [flag for group in ALL for flag in group]
    assert set(defined) <= used
    assert len(defined) == len(set(defined))
    for command in COMMANDS:
        names = [flag.name for flag in command.flags]
        assert len(names) == len(set(names)), command.name


def test_every_help_text_can_be_made() -> None:
    for command in COMMANDS:
        assert command.summary[1:20] in parser_of(command).format_help().replace("\n", " ")


def test_the_reference_in_the_docs_is_what_help_prints() -> None:
    assert (DOCS / "cli.md").read_text() == reference()
