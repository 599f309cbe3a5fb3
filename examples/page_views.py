"""Page views: one stream, two groups. Each counts all of it in its own way, at its own pace."""

from collections import Counter

from kafkaesque.patterns import Delivery, publish, worker
from kafkaesque.testing.story import tell, until

VISITS = [
    *(("ada", "/"), ("ada", "/books"), ("grace", "/"), ("ada", "/cart")),
    *(("grace", "/books"), ("linus", "/"), ("linus", "/books"), ("grace", "/books")),
]


async def story(bootstrap: str) -> bool:
    """Count views of pages and follow visitors, from the same topic."""
    views: Counter[str] = Counter()
    paths: dict[str, list[str]] = {}

    async def count(view: Delivery) -> None:
        views[view.text] += 1

    async def follow(view: Delivery) -> None:
        visitor = (view.key or b"").decode()
        paths.setdefault(visitor, []).append(view.text)

    async with publish(bootstrap) as site:
        for visitor, page in VISITS:
            await site.send("page-views", page, key=visitor)
    print(f"{len(VISITS)} pages were viewed.")
    async with worker(bootstrap, "page-views", count, group="counters"):
        await until(lambda: views.total() == len(VISITS))
    print("The counters are done, before the followers have started:")
    for page, number in views.most_common():
        print(f"  {page} {number}")
    async with worker(bootstrap, "page-views", follow, group="followers"):
        await until(lambda: sum(map(len, paths.values())) == len(VISITS))
    for visitor, path in sorted(paths.items()):
        print(f"  {visitor} went {' -> '.join(path)}")
    expected: dict[str, list[str]] = {}
    for visitor, page in VISITS:
        expected.setdefault(visitor, []).append(page)
    return paths == expected and views == Counter(page for _, page in VISITS)


if __name__ == "__main__":
    tell(story)
