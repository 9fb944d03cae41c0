"""The command `dpmedian`, with one module for each subcommand.

Results are printed to stdout, and everything else to stderr. An error is one line on stderr and an exit code.
"""

from dpmedian.cli.command import main

__all__ = ["main"]
