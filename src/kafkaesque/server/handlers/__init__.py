"""One file per API, each with a `handle` function; no handler imports another."""
