"""Tests of the harness that measures the field."""
