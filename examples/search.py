"""Search: scatter and gather. Every index server searches its part, and the best hits win."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack

from kafkaesque.patterns import Delivery, reply, scatter
from kafkaesque.testing.story import tell

SHELVES = {
    "index-a": ["kafka in the castle", "a hunger artist"],
    "index-b": ["the trial of kafka, kafka and sons", "the burrow"],
    "index-c": ["letters to kafka"],
}


def server(books: list[str]) -> Callable[[Delivery], Awaitable[str]]:
    """Return the handler of one index server: a line with hits and title for each book found."""

    async def look(query: Delivery) -> str:
        found = [(title.count(query.text), title) for title in books]
        return "\n".join(f"{hits} {title}" for hits, title in found if hits)

    return look


def rank(answers: Mapping[str, bytes | None]) -> list[str]:
    """Combine the answers of all servers into one list, best first."""
    lines = [line for answer in answers.values() for line in (answer or b"").decode().splitlines()]
    return sorted(lines, reverse=True)


async def story(bootstrap: str) -> bool:
    """Search with all servers, then with one of them down."""
    async with scatter(bootstrap, rank) as ask, AsyncExitStack() as servers:
        for name, books in SHELVES.items():
            if name != "index-c":
                await servers.enter_async_context(
                    reply(bootstrap, "search", server(books), name=name)
                )
        async with reply(bootstrap, "search", server(SHELVES["index-c"]), name="index-c"):
            whole = await ask("search", "kafka", workers=SHELVES)
        print("All servers:", *whole.value, sep="\n  ")
        part = await ask("search", "kafka", workers=SHELVES, deadline_seconds=1)
        print(f"Without {', '.join(part.missing)}:", *part.value, sep="\n  ")
    return (
        whole.is_whole
        and len(whole.value) == 3
        and whole.value[0].startswith("2 the trial")
        and part.missing == {"index-c"}
        and len(part.value) == 2
    )


if __name__ == "__main__":
    tell(story)
