"""Mechanisms: the only place where data become releases.

A mechanism is a frozen object that is calibrated once from public parameters. It queries a source for statistics and
passes the exact answers to the tape, which adds the noise. It states its cost as a `Stage`. The proof of a mechanism is
in the Markdown file of the same name."""
