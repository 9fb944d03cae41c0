"""Plans, releases and ledgers as text, HTML and JSON."""
