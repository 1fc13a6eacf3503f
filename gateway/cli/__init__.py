"""The command line `gateway` (also `kubectl gateway`): thin, over the SDK.

It parses, calls the SDK and prints. Only `dev`, `serve` and `db` reach below the SDK, and import
what they need when they run, so that every other command starts fast without the server extra.
"""

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    from gateway.cli.app import run  # noqa: PLC0415 - keeps `import gateway.cli` free of typer

    sys.exit(run(sys.argv[1:]))
