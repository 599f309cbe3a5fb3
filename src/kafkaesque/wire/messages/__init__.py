"""One file per API: its versions, its request, its answer and their parts."""
