"""One file per system: how to find, configure, start and stop it."""
