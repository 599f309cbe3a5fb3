"""Tests of the harness that compares the systems of the field."""
