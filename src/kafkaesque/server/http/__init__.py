"""Pages and metrics over HTTP. Every metric is declared here once and read when it is asked for.
May import `edge` and what is below it, not `peers`.
"""
