"""Joining a cluster and reaching its brokers. Here a broker founds, joins or rejoins a cluster,
exchanges with its peers over links, and sends requests to whichever broker leads. May import `edge`
and what is below it, not `http`.
"""
