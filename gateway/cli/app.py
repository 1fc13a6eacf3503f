"""Puts the commands together and runs one, turning errors into words and exit codes."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway import __version__
from gateway.cli import (
    cohorts,
    configuration,
    exits,
    explaining,
    flavors,
    fleet,
    jobs,
    ordering,
    priority_classes,
    queues,
    server,
    sharing,
    submitting,
)
from gateway.cli.layout import Heading, Sections, keep_examples
from gateway.cli.session import SESSION, client
from gateway.errors import GatewayError, InvalidInput

SHELLS = ("bash", "zsh", "fish")
COMPLETE_VARIABLE = "_GATEWAY_COMPLETE"
EPILOG = "Exit codes: 0 fine, 1 job failed, 2 usage, 3 refused, 4 not found, 5 denied, \
6 gateway unreachable, 124 timed out."


JOB_COMMANDS: tuple[Callable[..., None], ...] = (
    submitting.submit,
    jobs.ls,
    jobs.show,
    explaining.explain,
    jobs.events,
    jobs.logs,
    jobs.wait,
    jobs.cancel,
    jobs.hold,
    jobs.release,
    jobs.requeue,
    jobs.reprioritise,
    ordering.top,
)
"""In the order in which help lists them."""


def build() -> typer.Typer:
    """Give the whole command line, in the order in which help lists it."""
    app = typer.Typer(
        name="gateway",
        cls=Sections,
        no_args_is_help=True,
        context_settings={"help_option_names": ["--help", "-h"]},
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        help="Queue PyTorchJobs fairly, and start each gang on devices reserved before launch.",
        epilog=EPILOG,
    )
    app.callback()(common)
    for command in JOB_COMMANDS:
        app.command(command.__name__, rich_help_panel=Heading.JOBS)(command)
    _add_admin_commands(app)
    server.register(app, Heading.SERVERS)
    for other in (whoami, completion):
        app.command(other.__name__, rich_help_panel=Heading.OTHER)(other)
    return app


def _add_admin_commands(app: typer.Typer) -> None:
    for name, group in (
        ("queue", queues.queue_app()),
        ("cohort", cohorts.cohort_app()),
        ("flavor", flavors.flavor_app()),
        ("priority-class", priority_classes.priority_class_app()),
    ):
        app.add_typer(group, name=name, rich_help_panel=Heading.SHARING)
    for command in (sharing.share, configuration.apply, configuration.export):
        app.command(command.__name__, rich_help_panel=Heading.SHARING)(command)
    app.add_typer(fleet.node_app(), name="node", rich_help_panel=Heading.FLEET)
    app.add_typer(fleet.device_app(), name="device", rich_help_panel=Heading.FLEET)


def command_line() -> Any:
    """Give the whole command line, ready to run."""
    command: Any = typer.main.get_command(build())
    keep_examples(command)
    # `completion` prints the scripts; these two options offer the same once more.
    command.params = [
        option
        for option in command.params
        if option.name not in {"install_completion", "show_completion"}
    ]
    return command


def _print_version(wanted: bool) -> None:
    # An eager callback runs before the missing command is complained about.
    if wanted:
        print(__version__)  # noqa: T201 - what was asked for
        raise typer.Exit


def common(
    url: Annotated[str | None, typer.Option(help="Gateway to talk to.", metavar="URL")] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the token.", metavar="FILE")
    ] = None,
    timeout: Annotated[
        float, typer.Option(help="Seconds for one request.", metavar="SECONDS")
    ] = 30.0,
    no_color: Annotated[
        bool, typer.Option("--no-color", help="No colours; so does NO_COLOR=1.")
    ] = False,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Take the options that stand before the command."""
    SESSION.url, SESSION.token_file, SESSION.timeout_seconds = url, token_file, timeout
    SESSION.no_color = no_color


def whoami() -> None:
    """Say who the gateway thinks you are.

    Example:
      gateway whoami
    """
    me = client().whoami()
    exits.say(f"{me.name}, {me.role.value}, namespaces: {', '.join(me.namespaces)}")


def completion(
    shell: Annotated[str, typer.Argument(help="bash, zsh or fish.", metavar="SHELL")] = "bash",
) -> None:
    """Print a completion script for your shell.

    Examples:
      source <(gateway completion bash)
      source <(gateway completion zsh)
      gateway completion fish > ~/.config/fish/completions/gateway.fish
    """
    if shell not in SHELLS:
        raise InvalidInput(
            f"no completion for {shell!r}",
            pointer="SHELL",
            value=shell,
            allowed=SHELLS,
            hint="source <(gateway completion bash)",
        )
    os.environ[COMPLETE_VARIABLE] = f"source_{shell}"
    try:
        command_line().main([], prog_name="gateway")
    finally:
        del os.environ[COMPLETE_VARIABLE]


def run(arguments: list[str]) -> int:
    """Run one command and give its exit code."""
    try:
        command_line().main(arguments, prog_name="gateway")
    except GatewayError as error:
        exits.tell(error)
        return exits.exit_code(error)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else exits.USAGE
    finally:
        SESSION.close()
    return exits.FINE
