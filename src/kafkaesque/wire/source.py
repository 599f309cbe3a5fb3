"""The source text of generated functions, and the names that it refers to."""

import linecache
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Source:
    """Lines of Python, indented by `block`."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = dict(names)
        self._lines: list[str] = []
        self._indent = 0
        self._count = 0

    def line(self, text: str) -> None:
        """Add a line."""
        self._lines.append("    " * self._indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add a line that ends in a colon; lines added within the context are its body."""
        self.line(head)
        self._indent += 1
        yield
        self._indent -= 1

    def fresh(self, stem: str) -> str:
        """Return an unused name."""
        self._count += 1
        return f"{stem}_{self._count}"

    def constant(self, value: object) -> str:
        """Return a name for a value, for use in the functions."""
        name = self.fresh("c")
        self.names[name] = value
        return name

    def function(self, name: str, title: str) -> Callable[..., Any]:
        """Compile all lines and return one of the functions.

        The text is kept under `title` for tracebacks and debuggers.
        """
        text = "\n".join(self._lines) + "\n"
        filename = f"<{title}>"
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        exec(compile(text, filename, "exec"), self.names)
        function: Callable[..., Any] = self.names[name]
        return function
