"""Rules broken on purpose, to check that the simulator or a scenario notices."""
