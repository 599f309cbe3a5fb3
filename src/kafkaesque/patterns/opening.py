"""What is open between entering and leaving `async with`."""

from abc import ABC, abstractmethod
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self


class Opening(ABC):
    """Opens on entering; leaving, or an error while it opens, closes what the stack has by then."""

    @abstractmethod
    async def _open(self, stack: AsyncExitStack) -> None:
        """Open everything, and push on the stack how to close it."""

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await self._open(stack)
            self._opened = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._opened.__aexit__(kind, error, trace)
