"""The names that examples of docstrings use without importing them (scripts/test-python)."""

import importlib

import numpy
import pytest

import basin
from basin import ham, tasks, zoo


@pytest.fixture(autouse=True)
def _names(doctest_namespace):
    doctest_namespace.update(numpy=numpy, basin=basin, ham=ham, tasks=tasks, zoo=zoo)
    for framework in ("torch", "jax"):
        try:
            doctest_namespace[framework] = importlib.import_module(framework)
        except ImportError:  # whose module of the package is then left out, too
            continue
