"""Puts the commands together and runs one, turning errors into words and exit codes."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

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
    """Give the whole command line."""
    app = typer.Typer(
        name="gateway",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        help="Queue PyTorchJobs fairly, and start each gang on devices reserved before launch.",
        epilog=EPILOG,
    )
    app.callback()(common)
    for command in JOB_COMMANDS:
        app.command(command.__name__)(command)
    app.add_typer(queues.queue_app(), name="queue")
    app.add_typer(cohorts.cohort_app(), name="cohort")
    app.add_typer(flavors.flavor_app(), name="flavor")
    app.add_typer(priority_classes.priority_class_app(), name="priority-class")
    for name, command in (
        ("apply", configuration.apply),
        ("export", configuration.export),
        ("share", sharing.share),
        ("whoami", whoami),
        ("completion", completion),
    ):
        app.command(name)(command)
    app.add_typer(fleet.node_app(), name="node")
    app.add_typer(fleet.device_app(), name="device")
    server.register(app)
    return app


def _print_version(wanted: bool) -> None:
    # An eager callback runs before the missing command is complained about.
    if wanted:
        print(__version__)  # noqa: T201 - what was asked for
        raise typer.Exit


def common(
    url: Annotated[str | None, typer.Option(help="Gateway to talk to.")] = None,
    token_file: Annotated[Path | None, typer.Option(help="File with the token.")] = None,
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
    """Say who the gateway thinks you are."""
    me = client().whoami()
    exits.say(f"{me.name}, {me.role.value}, namespaces: {', '.join(me.namespaces)}")


def completion(
    shell: Annotated[str, typer.Argument(help="bash, zsh or fish.")] = "bash",
) -> None:
    """Print a completion script.

    Example: source <(gateway completion bash)
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
        typer.main.get_command(build()).main([], prog_name="gateway")
    finally:
        del os.environ[COMPLETE_VARIABLE]


def run(arguments: list[str]) -> int:
    """Run one command and give its exit code."""
    command = typer.main.get_command(build())
    try:
        command.main(arguments, prog_name="gateway")
    except GatewayError as error:
        exits.tell(error)
        return exits.exit_code(error)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else exits.USAGE
    finally:
        SESSION.close()
    return exits.FINE
