"""Medians of groups. There is one plan and one charge for all groups, and a release or a failure for each group."""
