"""Medians of groups: one plan and one charge for all of them, a release or a failure for each."""
