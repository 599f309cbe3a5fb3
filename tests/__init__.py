"""Tests; the folders mirror `src/kafkaesque`, and `house/` holds the rules of the repository."""
