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
    # The kernel closes the parent's end of the pipe however the parent dies, SIGKILL included.
    # PR_SET_PDEATHSIG would fire when the thread that started us ends, and is Linux only.
    while os.read(sys.stdin.fileno(), 4096):
        pass
    # A signal and not an exit: only the main thread can take the server down in order.
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=end_with_parent, daemon=True).start()
    sys.argv[0] = "gateway"
    runpy.run_module("gateway", run_name="__main__", alter_sys=True)
