"""Mechanisms: the only place where data become releases.

Each mechanism is a frozen value, calibrated once from public parameters. It queries a source for its statistics, passes
the exact answers to the tape, which adds the noise, and states its cost as a `Stage`. Its proof lies beside it under
the same name."""
