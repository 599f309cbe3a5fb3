"""Executes one client's commands one by one; the session owns its subscriptions."""

from collections.abc import Sequence
from typing import assert_never

from kafkaesque.errors import KafkaesqueError
from kafkaesque.gateway import text_replies
from kafkaesque.gateway.text_commands import (
    Command,
    Consume,
    CreateTopic,
    Disconnect,
    Help,
    ListTopics,
    Publish,
    Push,
    Stop,
    Subscribe,
)
from kafkaesque.gateway.text_desk import TextDesk
from kafkaesque.gateway.text_errors import BadCommand
from kafkaesque.gateway.text_fetch import read
from kafkaesque.gateway.text_message import Message
from kafkaesque.gateway.text_publish import publish
from kafkaesque.gateway.text_push import Pusher, Send
from kafkaesque.gateway.text_topics import create_topic, find_topic, list_topics


class TextSession:
    """The state of one connection. Every reply is whole lines; `close` frees everything."""

    def __init__(self, desk: TextDesk, send: Send) -> None:
        self._desk = desk
        self._send = send
        self._pusher: Pusher | None = None

    @property
    def is_pushing(self) -> bool:
        """Whether records are being pushed."""
        return self._pusher is not None and self._pusher.is_running

    async def publish(self, topic: str, messages: Sequence[Message]) -> bytes:
        """Publish messages and return a reply for each."""
        fates = await publish(self._desk, topic, messages)
        return b"".join(
            text_replies.DONE if fate is None else text_replies.failure(fate) for fate in fates
        )

    async def answer(self, command: Command) -> bytes:
        """Execute a command; an error becomes the reply."""
        try:
            return await self._answer(command)
        except KafkaesqueError as error:
            return text_replies.failure(str(error))

    async def close(self) -> None:
        """Stop pushing, and free the partitions."""
        try:
            await self._stop_pushing()
        except KafkaesqueError:
            pass  # the position is up to a second old; the client is gone
        finally:
            self._desk.subscriptions.release_all(self)

    async def _answer(self, command: Command) -> bytes:
        match command:
            case CreateTopic():
                await create_topic(self._desk.channel, command, self._desk.limits.timeout_ms)
                return text_replies.DONE
            case Publish(topic=topic, message=message):
                return await self.publish(topic, [message])
            case Subscribe():
                return await self._subscribe(command)
            case Consume():
                return await self._consume(command)
            case Push():
                return await self._push(command)
            case Stop():
                if not self.is_pushing:
                    raise BadCommand("no push is running")
                await self._stop_pushing()
                return text_replies.DONE
            case ListTopics():
                return text_replies.data(await list_topics(self._desk.channel))
            case Help():
                return text_replies.HELP
            case Disconnect():
                await self.close()
                return text_replies.BYE
            case _:
                assert_never(command)

    async def _subscribe(self, command: Subscribe) -> bytes:
        place = await find_topic(self._desk.channel, command.topic, may_create=False)
        taken = self._desk.subscriptions.take(
            self, place.name, command.group, place.partitions, command.count
        )
        return text_replies.data([subscription.id for subscription in taken])

    async def _consume(self, command: Consume) -> bytes:
        found = self._desk.subscriptions.find(self, command.subscription, command.topic)
        place = await find_topic(self._desk.channel, command.topic, may_create=False)
        records = await read(self._desk, place, found.partition, command.offset)
        return text_replies.data([text_replies.shown_record(record) for record in records])

    async def _push(self, command: Push) -> bytes:
        if self.is_pushing:
            raise BadCommand("a push is already running; STOP it first")
        await self._stop_pushing()  # a push that failed still holds its partitions
        place = await find_topic(self._desk.channel, command.topic, may_create=False)
        taken = self._desk.subscriptions.take(
            self, place.name, command.group, place.partitions, command.count
        )
        pusher = Pusher(self._desk, place, taken, self._send)
        self._pusher = pusher
        try:
            await pusher.prepare()
        except KafkaesqueError:
            await self._stop_pushing()
            raise
        # Another task sends the first record, so it follows the reply returned here.
        pusher.start()
        return text_replies.data([subscription.id for subscription in taken])

    async def _stop_pushing(self) -> None:
        pusher, self._pusher = self._pusher, None
        if pusher is None:
            return
        try:
            await pusher.stop()
        finally:
            for subscription in pusher.subscriptions:
                self._desk.subscriptions.release(self, subscription)
