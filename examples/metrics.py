"""Metrics: services publish measurements, one program averages them, all see the averages."""

from collections import defaultdict

from kafkaesque.patterns import Delivery, publish, table, worker
from kafkaesque.testing.story import tell, until

SERVICES = {"checkout": (120, 80, 100), "search": (30, 20, 10), "login": (5, 5, 5)}


async def story(bootstrap: str) -> bool:
    """Average the response times of three services into a table."""
    times: dict[str, list[int]] = defaultdict(list)
    async with table(bootstrap, "averages") as averages, publish(bootstrap) as services:

        async def add_up(measured: Delivery) -> None:
            name = (measured.key or b"").decode()
            times[name].append(int(measured.text))
            average = sum(times[name]) // len(times[name])
            await averages.put(name, str(average))
            print(f"{name} took {measured.text} ms, {average} ms on average")

        async with worker(bootstrap, "response-times", add_up):
            for number in range(3):
                for service, measured in SERVICES.items():
                    await services.send("response-times", str(measured[number]), key=service)
            await until(lambda: sum(map(len, times.values())) == 9)
    async with table(bootstrap, "averages") as dashboard:
        print("A dashboard that starts now sees:")
        for name, average in sorted(dashboard.items()):
            print(f"  {name.decode()}: {average.decode()} ms")
        return dict(dashboard) == {b"checkout": b"100", b"search": b"20", b"login": b"5"}


if __name__ == "__main__":
    tell(story)
