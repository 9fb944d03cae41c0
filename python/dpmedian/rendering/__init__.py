"""Plans, releases and ledgers as text, HTML and JSON, all derived from the same data."""
