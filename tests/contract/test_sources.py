"""Every source is registered, and none shows a number."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import dpmedian.sources
from contract.registry import SOURCE_CLASSES


def test_every_source_is_registered():
    found = set()
    for module in pkgutil.iter_modules(dpmedian.sources.__path__, "dpmedian.sources."):
        if module.name.endswith(".protocol"):
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(value) and value.__module__ == module.name and hasattr(value, "answer"):
                found.add(value)
    assert found == SOURCE_CLASSES
