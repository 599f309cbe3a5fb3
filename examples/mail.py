"""Mail: dead letters. Undeliverable mail is put aside, and sent again after a repair."""

from kafkaesque.patterns import (
    Delivery,
    RedriveSettings,
    RetryPlan,
    WorkerSettings,
    publish,
    redrive,
    worker,
)
from kafkaesque.patterns.letters import open_letters, read_marks
from kafkaesque.testing.story import tell, until

FULL: set[str] = {"kurt@example.com"}
PATIENCE = WorkerSettings(retries=RetryPlan(delays_ms=(50, 100)))


async def story(bootstrap: str) -> bool:
    """Deliver mail to a full mailbox, empty it, and deliver again."""
    delivered: list[str] = []

    async def deliver(mail: Delivery) -> None:
        address = mail.text
        if "@" not in address:
            mail.nack("this is not an address", retry=False)
        elif address in FULL:
            print(f"  attempt {mail.attempt}: the mailbox of {address} is full")
            raise OSError("mailbox full")
        else:
            delivered.append(address)
            print(f"  delivered to {address}")

    async with (
        publish(bootstrap) as post,
        worker(bootstrap, "mail", deliver, settings=PATIENCE) as carrier,
    ):
        for address in ("ada@example.com", "kurt@example.com", "nobody"):
            await post.send("mail", address)
        await until(lambda: len(delivered) == 1 and carrier.dead == 2)
        put_aside = carrier.names.dead_letter
        for letter in open_letters(bootstrap, put_aside, read_marks(bootstrap, put_aside)):
            if dead := letter.dead:
                why = f"{dead.failure.reason}, attempts: {dead.attempts}"
                print(f"Put aside: {letter.message.text}, {why}")
        FULL.clear()
        print("Kurt empties his mailbox; his mail is sent again.")
        only_full = RedriveSettings(where=lambda _, dead: bool(dead and dead.attempts == 3))
        done = await redrive(bootstrap, put_aside, only_full)
        await until(lambda: len(delivered) == 2)
    return delivered == ["ada@example.com", "kurt@example.com"] and (done.moved, done.seen) == (
        1,
        2,
    )


if __name__ == "__main__":
    tell(story)
