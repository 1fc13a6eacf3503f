"""Runs a gateway command that ends with its parent: at the end of standard input it stops.

A notebook's kernel may be killed without a chance to clean up; its gateway must not stay behind.
"""

import os
import runpy
import signal
import sys
import threading


def end_with_parent() -> None:
    """Ask this process to stop once nobody holds the other end of standard input."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=end_with_parent, daemon=True).start()
    sys.argv[0] = "gateway"
    runpy.run_module("gateway", run_name="__main__", alter_sys=True)
