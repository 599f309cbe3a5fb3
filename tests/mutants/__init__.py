"""Rules broken on purpose, to see that the simulator or a scenario notices."""
