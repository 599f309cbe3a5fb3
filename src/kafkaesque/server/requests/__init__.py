"""What a request meets between its arrival and its answer. Here are its session, how it waits
without a task, which code an error has, and how addresses are read. It may import no other room of
the server.
"""
