"""Commands that run or prepare a server: dev, serve, db, doctor. They need the server extra."""

import importlib.util
import os
import re
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from gateway import __version__
from gateway.cli import exits
from gateway.cli.options import Output, given
from gateway.cli.output import Column, Format, show_list
from gateway.core.vocabulary import ENVIRONMENT_PREFIX, BackendName
from gateway.errors import InvalidInput, NotFound, StartupRefused

Port = Annotated[int | None, typer.Option(help="Port; 0 takes a free one.", metavar="PORT")]
StateDir = Annotated[
    Path | None, typer.Option(help="Folder for the database and attempts.", metavar="FOLDER")
]


def register(app: typer.Typer, panel: str) -> None:
    """Add these commands below a heading."""
    for command in (dev, serve, doctor):
        app.command(command.__name__, rich_help_panel=panel)(command)
    app.add_typer(db_app(), name="db", rich_help_panel=panel)


def read_settings(**flags: Any) -> Any:
    """Give the settings: flags win over the environment."""
    if importlib.util.find_spec("sqlalchemy") is None:
        raise StartupRefused(
            "this command needs the server extra",
            hint="install it: pip install 'training-gateway[server]'",
        )
    from pydantic import ValidationError  # noqa: PLC0415 - costs a tenth of a second

    from gateway.settings import Settings  # noqa: PLC0415 - server extra

    try:
        return Settings(**given(**flags))
    except ValidationError as error:
        raise _wrong_setting(error.errors(include_url=False)[0]) from None


def _wrong_setting(complaint: Any) -> StartupRefused:
    name = ".".join(map(str, complaint["loc"]))
    variable = f"{ENVIRONMENT_PREFIX}{name.upper()}" if name else ""
    # The value is not shown: the database's URL holds a password.
    return StartupRefused(
        f"{variable or 'the settings'}: {complaint['msg']}",
        pointer=variable,
        hint="the table of settings is in docs/reference/settings.md",
    )


def dev(
    port: Port = None,
    state_dir: StateDir = None,
    fleet: Annotated[
        str | None,
        typer.Option(help="Virtual nodes, for example 2xdgx-h100,1xcpu.", metavar="NODES"),
    ] = None,
    backend: Annotated[
        BackendName, typer.Option(help="local runs real processes; simulated runs none.")
    ] = BackendName.LOCAL,
    ephemeral: Annotated[
        bool, typer.Option("--ephemeral", help="Fresh state, thrown away at the end.")
    ] = False,
) -> None:
    """Run a gateway on this machine, to try things.

    SQLite, local processes, a virtual fleet. Other commands on this machine find it by themselves.
    Ctrl-C ends it.

    Examples:
      gateway dev
      gateway dev --ephemeral --backend simulated --fleet 4xdgx-h100
    """
    with _state_folder(state_dir, is_fresh=ephemeral) as folder:
        settings = read_settings(
            listen_port=port,
            state_dir=folder,
            virtual_fleet=fleet,
            backend=backend,
            allow_local_backend=True,
            allow_unsafe_templates=_asks_unsafe() or None,
            # Nobody looks at a throw-away gateway's jobs an hour later.
            keep_finished_seconds=60 if ephemeral else None,
        )
        from gateway import bootstrap  # noqa: PLC0415 - server extra

        bootstrap.dev(settings, _welcome)


def _state_folder(
    folder: Path | None, *, is_fresh: bool
) -> AbstractContextManager[Path | str | None]:
    """Give the folder that is named, or one that goes with the command."""
    if folder is None and is_fresh:
        # Local attempts may still write while the folder goes; that is no error worth showing.
        return TemporaryDirectory(prefix="training-gateway-", ignore_cleanup_errors=True)
    return nullcontext(folder)


def _welcome(url: str) -> None:
    exits.say(f"""gateway {__version__} on {url}; Ctrl-C ends it. In another terminal:
  gateway submit FILE --watch
  gateway ls
  gateway device map""")


def _asks_unsafe() -> bool:
    return os.environ.get(f"{ENVIRONMENT_PREFIX}ALLOW_UNSAFE_TEMPLATES", "") in {"1", "true"}


def serve(
    host: Annotated[
        str | None, typer.Option(help="Address; loopback by default.", metavar="ADDRESS")
    ] = None,
    port: Port = None,
    token_file: Annotated[
        Path | None, typer.Option(help="Accepted tokens, one a line.", metavar="FILE")
    ] = None,
    new_token: Annotated[
        str | None,
        typer.Option(help="Add a token for NAME to the file, print it, and exit.", metavar="NAME"),
    ] = None,
    role: Annotated[
        str, typer.Option(help="Role of the new token: user or admin.", metavar="ROLE")
    ] = "user",
    namespaces: Annotated[
        str, typer.Option(help="Its namespaces: a,b or *.", metavar="NAMES")
    ] = "default",
) -> None:
    """Run the server with the settings of the environment.

    Examples:
      gateway serve --token-file tokens --new-token alice --namespaces team-a
      TRAINING_GATEWAY_LISTEN_PORT=8080 gateway serve --token-file tokens
    """
    settings = read_settings(listen_host=host, listen_port=port, token_file=token_file)
    if new_token is not None:
        _add_token(settings.token_file, new_token, role, namespaces)
        return
    from gateway import bootstrap  # noqa: PLC0415 - server extra

    bootstrap.serve(settings)


def _add_token(file: Path | None, name: str, role: str, namespaces: str) -> None:
    from gateway.api.tokens import new_token, token_line  # noqa: PLC0415 - server extra
    from gateway.core.vocabulary import Role  # noqa: PLC0415 - beside its user
    from gateway.service.context import Caller  # noqa: PLC0415 - server extra

    if file is None:
        raise NotFound("no token file is named", hint="give --token-file FILE")
    _require_token_words(name, role, namespaces)
    token = new_token()
    caller = Caller(name=name, role=Role(role), namespaces=tuple(namespaces.split(",")))
    _append_line(file, token_line(token, caller))
    exits.say(f"added to {file}; the token is shown this once:")
    print(token)  # noqa: T201 - what was asked for


def _require_token_words(name: str, role: str, namespaces: str) -> None:
    """Refuse words that would make a line which the server then refuses to start on."""
    for option, words, fits, allowed in (
        ("--new-token", name, re.fullmatch(r"[^\s#]\S*", name), "a name without spaces"),
        ("--role", role, role in {"user", "admin"}, "user, admin"),
        ("--namespaces", namespaces, re.fullmatch(r"[^\s,]+(,[^\s,]+)*", namespaces), "a,b or *"),
    ):
        if not fits:
            raise InvalidInput(
                f"{words!r} does not fit into a token file",
                pointer=option,
                value=words,
                allowed=(allowed,),
                hint="nothing was written; choose another",
            )


def _append_line(file: Path, line: str) -> None:
    # Created for its owner alone from the first moment; chmod afterwards would leave a gap.
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "rb+") as lines:
        # An editor may have left the last line open; glued to it, both tokens would be lost.
        size = lines.seek(0, os.SEEK_END)
        is_open = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        lines.write(("\n" * is_open + line + "\n").encode())


def db_app() -> typer.Typer:
    """Give the commands below `gateway db`."""
    app = typer.Typer(no_args_is_help=True, help="The database: upgrade, check, backup.")
    url_option = typer.Option("--url", help="Database; the settings' one otherwise.", metavar="URL")

    @app.command("upgrade")
    def upgrade(url: Annotated[str | None, url_option] = None) -> None:
        """Create or migrate the schema; safe to repeat.

        Example:
          gateway db upgrade --url postgresql://gateway@127.0.0.1/gateway
        """
        settings = read_settings(database_url=url)
        from gateway.db import migrations  # noqa: PLC0415 - server extra

        exits.say(f"the database is at revision {migrations.upgrade(settings.url)}")

    @app.command("check")
    def check(url: Annotated[str | None, url_option] = None) -> None:
        """Say whether the schema is this release's.

        Example:
          gateway db check
        """
        settings = read_settings(database_url=url)
        from gateway.db import engine, migrations  # noqa: PLC0415 - server extra

        with closing(engine.open_database(settings.url, pool_size=2)) as database:
            migrations.check_head(database)
            exits.say(f"fine: revision {migrations.current_revision(database)}")

    @app.command("backup")
    def backup(
        target: Annotated[Path, typer.Argument(help="New file.", metavar="FILE")],
        url: Annotated[str | None, url_option] = None,
    ) -> None:
        """Copy a SQLite database while it is in use.

        For PostgreSQL use pg_dump.

        Example:
          gateway db backup gateway-copy.db
        """
        settings = read_settings(database_url=url)
        from gateway.db import backups  # noqa: PLC0415 - server extra

        backups.backup(settings.url, target)
        exits.say(f"written to {target}")

    return app


def doctor(
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Cluster credentials.", metavar="FILE")
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Check whether a cluster can be used.

    Reachable, versions, rights, and what devices could be guaranteed.

    Example:
      gateway doctor --kubeconfig ~/.kube/config
    """
    settings = read_settings(kubeconfig=kubeconfig)
    from gateway.backends.kubeflow.doctor import Check, examine  # noqa: PLC0415 - server extra

    columns: list[Column[Check]] = [
        Column("CHECK", lambda item: item.name),
        Column("OK", lambda item: "yes" if item.ok else "NO"),
        Column("DETAIL", lambda item: item.detail),
        Column("NEXT", lambda item: item.fix),
    ]
    found = examine(settings.kubeconfig, settings.namespaces)
    show_list(found, columns, output, name="name")
    if not all(item.ok for item in found):
        raise typer.Exit(exits.REFUSED)
