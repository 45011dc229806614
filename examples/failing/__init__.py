"""Tests that fail on purpose."""
