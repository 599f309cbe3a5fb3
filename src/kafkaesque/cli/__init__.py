"""The command line: one file per group of commands, each imported only when it is called."""
