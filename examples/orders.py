"""Orders: a queue. Each order goes to one worker, and one customer's orders keep their order."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable

from kafkaesque.patterns import Delivery, publish, worker
from kafkaesque.testing.story import tell, until

CUSTOMERS = ("ada", "grace", "linus")
ORDERS_EACH = 5


async def story(bootstrap: str) -> bool:
    """Take orders, and let two clerks pack them."""
    packed: dict[str, list[str]] = defaultdict(list)

    def clerk(name: str) -> Callable[[Delivery], Awaitable[None]]:
        async def pack(order: Delivery) -> None:
            await asyncio.sleep(0.01)
            customer = (order.key or b"").decode()
            packed[customer].append(order.text)
            print(f"{name} packs {order.text} for {customer}")

        return pack

    async with publish(bootstrap) as shop:
        for number in range(ORDERS_EACH):
            for customer in CUSTOMERS:
                await shop.send("orders", f"order {number}", key=customer)
    print(f"The shop took {len(CUSTOMERS) * ORDERS_EACH} orders while no clerk was there.")
    async with (
        worker(bootstrap, "orders", clerk("Mia")),
        worker(bootstrap, "orders", clerk("Tom")),
    ):
        await until(lambda: sum(map(len, packed.values())) >= len(CUSTOMERS) * ORDERS_EACH)
    for customer, orders in sorted(packed.items()):
        print(f"{customer} gets {', '.join(orders)}")
    in_order = [f"order {number}" for number in range(ORDERS_EACH)]
    # At least once: a clerk who takes over may pack an order again, but never skips one.
    return all(list(dict.fromkeys(packed[each])) == in_order for each in CUSTOMERS)


if __name__ == "__main__":
    tell(story)
