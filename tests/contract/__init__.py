"""The contract of every method, statistic and source, from one registry; anything that is not registered fails."""
