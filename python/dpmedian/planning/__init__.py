"""Planning: from public parameters to a frozen `Plan`, before any data are looked at."""
