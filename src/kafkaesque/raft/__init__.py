"""Raft for one group, without I/O: `step`, `tick`, `propose` in, `Ready` out."""
