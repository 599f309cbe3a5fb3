"""Sends clients to the other brokers when this broker's knowledge may be outdated.

A broker that is cut off can only repeat the last leader, or report none. librdkafka asks the broker
it talked to last, which is the very one that lost its leadership: left alone, it asks that one
forever, while the others have long moved on. So a client that asks such a broker for leaders gets
its response and is then disconnected: it turns to another broker that it knows.
"""

from kafkaesque.broker.presence import is_cut_off
from kafkaesque.server.requests.session import Session


def send_on_if_cut_off(session: Session) -> None:
    """Close the connection after this response if the cluster may continue without this broker."""
    if is_cut_off(session.broker):
        session.dismiss()
