"""Protocols other than Kafka's, each a front end that calls the broker through a Channel."""
