"""Tests of the Spark side; those marked `spark` need the extra of that name."""
