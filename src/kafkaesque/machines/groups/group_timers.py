"""When each group is next due."""

import heapq


class GroupTimers:
    """One due time per group; checking a group too early does no harm."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        self._scheduled: dict[str, int] = {}

    def __len__(self) -> int:
        """Return how many entries are kept, including obsolete ones."""
        return len(self._heap)

    def set(self, name: str, due_ms: int) -> None:
        """Make a group due by then; an earlier time stays."""
        if due_ms >= self._scheduled.get(name, due_ms + 1):
            return
        self._scheduled[name] = due_ms
        heapq.heappush(self._heap, (due_ms, name))
        if len(self._heap) > 4 * len(self._scheduled) + 64:
            # Groups that come and go leave entries behind: keep one for each group only.
            self._heap = [(due, name) for name, due in self._scheduled.items()]
            heapq.heapify(self._heap)

    def due(self, now_ms: int) -> list[str]:
        """Return the groups that are due, each once, and forget their times."""
        due: set[str] = set()
        while self._heap and self._heap[0][0] <= now_ms:
            due.add(heapq.heappop(self._heap)[1])
        for name in due:
            self._scheduled.pop(name, None)
        return sorted(due)

    def drop(self, name: str) -> None:
        """Forget a group."""
        self._scheduled.pop(name, None)
