"""The command `dpmedian`, one module for each of its commands.

Results go to stdout, and everything else goes to stderr. An error is one line and an exit code.
"""

from dpmedian.cli.command import main

__all__ = ["main"]
