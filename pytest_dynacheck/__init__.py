"""Compile-stability checks for pytest: graph breaks, recompiles and silent eager runs fail a test."""

from __future__ import annotations

from pytest_dynacheck._public import Args, BudgetExceeded, DynacheckUnusedAllowance

__all__ = ["Args", "BudgetExceeded", "DynacheckUnusedAllowance"]
