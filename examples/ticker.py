"""A stock ticker: publish and subscribe. Every listener gets every price; they come and go."""

import asyncio

from kafkaesque.patterns import publish, subscribe
from kafkaesque.testing.story import tell, until


async def listen(bootstrap: str, name: str, heard: list[str], joined: asyncio.Event) -> None:
    """Print prices until cancelled."""
    async with subscribe(bootstrap, "prices") as prices:
        joined.set()
        async for price in prices:
            heard.append(price.text)
            print(f"  {name} hears {price.text}")


async def story(bootstrap: str) -> bool:
    """Publish prices while a trader stays, a newspaper joins late and an investor leaves early."""
    trader: list[str] = []
    investor: list[str] = []
    newspaper: list[str] = []
    async with publish(bootstrap) as exchange, asyncio.TaskGroup() as listeners:

        async def come(name: str, heard: list[str]) -> asyncio.Task[None]:
            joined = asyncio.Event()
            task = listeners.create_task(listen(bootstrap, name, heard, joined))
            await joined.wait()
            print(f"{name} listens.")
            return task

        async def price(text: str) -> None:
            print(f"The exchange says {text}")
            await exchange.send("prices", text, key="ACME")

        staying = await come("The trader", trader)
        leaving = await come("The investor", investor)
        await price("ACME 100")
        await until(lambda: len(trader) == len(investor) == 1)
        leaving.cancel()
        print("The investor has heard enough.")
        late = await come("The newspaper", newspaper)
        await price("ACME 104")
        await price("ACME 99")
        await until(lambda: len(trader) == 3 and len(newspaper) == 2)
        staying.cancel()
        late.cancel()
    everything = ["ACME 100", "ACME 104", "ACME 99"]
    return (trader, investor, newspaper) == (everything, everything[:1], everything[1:])


if __name__ == "__main__":
    tell(story)
