"""How help is laid out: commands by what they are about, examples as they are typed.

Knows no command by name.
"""

from enum import StrEnum
from typing import Any

from typer.core import TyperGroup

EXAMPLES = ("Example:", "Examples:")


class Heading(StrEnum):
    """What commands are about, in the order in which help lists them."""

    JOBS = "Jobs"
    SHARING = "Sharing"
    FLEET = "Fleet"
    SERVERS = "Servers"
    OTHER = "Other"


class Sections(TyperGroup):
    """A group whose help lists its commands under headings, given as `rich_help_panel`."""

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        """Write a section for each heading that has commands."""
        # One width for all sections, so that the descriptions stand below one another.
        width = max(map(len, self.commands), default=0)
        for heading in Heading:
            rows = [
                (f"{name:<{width}}", command.get_short_help_str(formatter.width - width - 6))
                for name, command in self.commands.items()
                if getattr(command, "rich_help_panel", None) == heading
            ]
            if rows:
                with formatter.section(heading.value):
                    formatter.write_dl(rows)


def keep_examples(command: Any) -> None:
    """Mark the examples in a command's help, and in those below, as not to be wrapped."""
    command.help = "\n\n".join(map(_marked, (command.help or "").split("\n\n")))
    for child in getattr(command, "commands", {}).values():
        keep_examples(child)


def _marked(paragraph: str) -> str:
    # A line with a backspace alone tells the writer of help to leave a paragraph as it is.
    return f"\b\n{paragraph}" if paragraph.startswith(EXAMPLES) else paragraph
