"""The front door: connections, dispatch, one handler per API, one table of errors."""
