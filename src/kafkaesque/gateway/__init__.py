"""Other protocols than Kafka's, each a front end that speaks to the broker through a Channel."""
