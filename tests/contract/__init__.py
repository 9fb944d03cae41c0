"""The contract of every method, statistic and source, from one registry. Anything that is not registered fails."""
