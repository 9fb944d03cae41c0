"""The command `dpmedian`, its subcommands and their exit codes."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence

from dpmedian import ConversionWarning, InsecureSeedWarning, ReleaseFailed, __version__
from dpmedian.cli import example, ledger, plan, release, report, reproduce, verify
from dpmedian.cli.arguments import Parser
from dpmedian.cli.output import EXIT_CODES, Refuted, Undelivered, say
from dpmedian.ledger import BudgetExceeded

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("always", InsecureSeedWarning)
        warnings.simplefilter("always", ConversionWarning)
        warnings.showwarning = _warn
        try:
            options.command(options)
        except BudgetExceeded as error:
            return say("error", error, 3)
        except ReleaseFailed as failed:
            return say("failed", failed, 4)
        except Undelivered as error:
            return say("error", error, 5)
        except Refuted as error:
            return say("refuted", error, 6)
        except (ValueError, TypeError, OSError, ImportError) as error:
            return say("error", error, 2)
        except KeyboardInterrupt:
            return say("interrupted", "every charge in the ledger stays spent, even if there is no result", 130)
        except Exception as error:
            return say("unexpected", f"{type(error).__name__}: {error}", 1)
    return 0


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    say("warning", message)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="dpmedian",
        description="The differentially private geometric median.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"dpmedian {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (release, plan, ledger, verify, report, example, reproduce):
        command.add(commands)
    return parser
