"""docs/commands.md: every command with its options, made from the declarations that `harness CMD --help` shows.

Run it with `make commands`, which writes the file.
"""

import re
from collections.abc import Iterator
from inspect import Parameter
from typing import Literal, get_args, get_origin

from cyclopts import App
from cyclopts.argument import Argument

from harness.cli.app import COMMANDS, application_for

HEAD = """\
# Commands

Made from the commands' declarations by `make commands`; `harness COMMAND --help` says the same.

| command | what it does |
| --- | --- |
"""


def main() -> None:
    """Print the document."""
    named = [found for name in COMMANDS for found in commands(application_for([name])[name], f"harness {name}")]
    rows = [f"| [`{name}`](#{name.replace(' ', '-')}) | {paragraphs(app)[0]} |" for name, app in named]
    print(HEAD + "\n".join(rows))
    for name, app in named:
        print("\n".join(["", f"## {name}", "", "\n\n".join(paragraphs(app))]))
        declared = app.assemble_argument_collection(parse_docstring=True)
        if options := [row for argument in declared for row in rows_of(argument)]:
            print("\n".join(["", "| option | what it says |", "| --- | --- |", *options]))


def commands(app: App, name: str) -> Iterator[tuple[str, App]]:
    """A command that can be called, and those below it."""
    if app.default_command is not None:
        yield name, app
    for below in app:
        if not below.startswith("-"):
            yield from commands(app[below], f"{name} {below}")


def paragraphs(app: App) -> list[str]:
    """What a command's help says before its options; command lines as code."""
    text = re.split(r"\n\s*Args:\n", app.help)[0].strip()
    found = [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text)]
    return [f"    {line}" if line.startswith(("harness ", "git bisect")) else line for line in found]


def rows_of(argument: Argument) -> Iterator[str]:
    """The line of an option; none of what is not one."""
    if not argument.parse or not argument.show or argument.children:
        return
    words = [argument.names[0].upper().lstrip("-")] if argument.index is not None else []
    words += [f"`{name}`" for name in argument.names if name.startswith("-")]
    text = f"{' '.join((argument.parameter.help or '').split())}{facts(argument)}".replace("|", "\\|")
    yield f"| {', '.join(words)} | {text} |"


def facts(argument: Argument) -> str:
    """What can be chosen, and what is chosen where nothing is said."""
    hint = next((kind for kind in (argument.hint, *get_args(argument.hint)) if get_origin(kind) is Literal), None)
    choices = f" One of {', '.join(f'`{choice}`' for choice in get_args(hint))}." if hint is not None else ""
    shown, default = argument.parameter.show_default, argument.field_info.default
    if argument.required:
        return f"{choices} Required."
    if shown is False or default in (None, (), False, "", Parameter.empty):
        return choices
    return f"{choices} Default: `{shown(default) if callable(shown) else default}`."


if __name__ == "__main__":
    main()
