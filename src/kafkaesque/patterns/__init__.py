"""Messaging patterns for users' programs, on any broker that speaks Kafka's protocol.

`from kafkaesque.patterns import request, reply, scatter, worker, redrive`: each function returns an
async context manager. They need confluent-kafka, and no code of the broker.
"""

from kafkaesque.patterns.dead_letter import DeadLetter, Failure, Origin
from kafkaesque.patterns.dead_letter_redrive import Redriven, RedriveSettings, redrive
from kafkaesque.patterns.delivery import Delivery
from kafkaesque.patterns.engine import EngineSettings
from kafkaesque.patterns.gather import Gathered
from kafkaesque.patterns.message import Message
from kafkaesque.patterns.pubsub import Subscription, publish, subscribe
from kafkaesque.patterns.requester import AskerSettings, Requester, Scatterer, request, scatter
from kafkaesque.patterns.responder import Responder, reply
from kafkaesque.patterns.retry_plan import RetryPlan
from kafkaesque.patterns.sender import Sender, Sent
from kafkaesque.patterns.tables import Table, table
from kafkaesque.patterns.workers import Worker, WorkerSettings, worker

__all__ = [
    "AskerSettings",
    "DeadLetter",
    "Delivery",
    "EngineSettings",
    "Failure",
    "Gathered",
    "Message",
    "Origin",
    "RedriveSettings",
    "Redriven",
    "Requester",
    "Responder",
    "RetryPlan",
    "Scatterer",
    "Sender",
    "Sent",
    "Subscription",
    "Table",
    "Worker",
    "WorkerSettings",
    "publish",
    "redrive",
    "reply",
    "request",
    "scatter",
    "subscribe",
    "table",
    "worker",
]
