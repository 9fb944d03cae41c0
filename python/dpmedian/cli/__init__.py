"""The command `dpmedian`, one module for each of its commands.

Results go to stdout, everything else to stderr; an error is one line and an exit code.
"""

from dpmedian.cli.command import main

__all__ = ["main"]
