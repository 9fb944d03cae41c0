"""Mechanisms: the only place where data become releases.

Each is a frozen value, calibrated once from public parameters, that states its sensitivity and its cost; its proof lies
beside it under the same name.
"""
