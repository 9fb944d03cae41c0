"""How plans, releases and ledgers read: as text, as HTML and as JSON."""
