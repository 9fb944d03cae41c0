"""What every method, statistic and source must keep, from one registry: what is not registered fails."""
