"""Sends clients on to the rest of the cluster, when what is known here may be no longer true.

A broker that is cut off can only repeat who led before, or that nobody does. librdkafka asks the
broker that it has talked to last, and that is the very one whose leadership has ended: left alone
it asks that one for ever, while the others have long gone on. So whoever asks such a broker for the
way is answered, and then hung up on: clients turn to another broker of those that they know.
"""

from kafkaesque.broker.presence import is_cut_off
from kafkaesque.server.session import Session


def send_on_if_cut_off(session: Session) -> None:
    """Let a client's connection end after this answer, if the cluster may go on without us."""
    if is_cut_off(session.broker):
        session.dismiss()
