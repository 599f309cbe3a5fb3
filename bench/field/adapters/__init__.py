"""One file for each system: how it is found, configured, started and stopped."""
