"""One file per API; a handler imports no other handler."""
