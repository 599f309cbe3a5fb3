"""How a rule is broken: a piece of one function's source is replaced while a test runs.

The text to replace must occur exactly once, so that a mutant cannot silently stop mutating when the
code around it changes.
"""

import importlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from types import FunctionType, ModuleType
from typing import Any

from kafkaesque.sim.many import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One planted bug: in `target`, written `module:Class.method`, `old` becomes `new`."""

    name: str
    target: str
    old: str
    new: str
    world: Kind = Kind.LOGS
    """The world whose seeds should notice it."""

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Break the rule inside the block, and restore it afterwards."""
        with self._replaced(self._broken):
            yield

    @contextmanager
    def watched(self, reached: set[str]) -> Iterator[None]:
        """Break nothing inside the block, but note the target in `reached` when it is called.

        What does not reach the target this way is not affected by the bug either, because the
        bug is planted in the same places.
        """

        def watching(owner: object, original: object) -> object:
            function, wrap = self._function(original)

            @wraps(function)
            def noting(*args: Any, **named: Any) -> Any:
                reached.add(self.target)
                return function(*args, **named)

            return noting if wrap is None else wrap(noting)

        with self._replaced(watching):
            yield

    @contextmanager
    def _replaced(self, replacement: Callable[[object, object], object]) -> Iterator[None]:
        owner, attribute = self._place()
        original = inspect.getattr_static(owner, attribute)
        new = replacement(owner, original)
        _swap(owner, attribute, original, new)
        try:
            yield
        finally:
            _swap(owner, attribute, new, original)

    def _place(self) -> tuple[object, str]:
        module_name, _, path = self.target.partition(":")
        owner: object = importlib.import_module(module_name)
        *parents, attribute = path.split(".")
        for parent in parents:
            owner = getattr(owner, parent)
        return owner, attribute

    def _function(self, original: object) -> tuple[FunctionType, type | None]:
        """Return the function to replace, and its wrapper."""
        function = original
        wrap: type | None = None
        if isinstance(original, property):
            function, wrap = original.fget, property
        elif isinstance(original, classmethod):
            function, wrap = original.__func__, classmethod
        assert isinstance(function, FunctionType), f"{self.target} is not a function"
        return function, wrap

    def _broken(self, owner: object, original: object) -> object:
        function, wrap = self._function(original)
        source = textwrap.dedent(inspect.getsource(function))
        assert source.count(self.old) == 1, f"{self.name}: the text to break is not there once"
        source = source.replace(self.old, self.new)
        if wrap is not None:
            source = source[source.index("def ") :]
        # Python finds the class of a bare `super()` in a cell around the function.
        source = f"def around(__class__):\n{textwrap.indent(source, '    ')}"
        source += f"\n    return {function.__name__}\n"
        names: dict[str, Any] = {}
        exec(compile(source, f"<mutant {self.name}>", "exec"), function.__globals__, names)
        broken = names["around"](owner)
        return broken if wrap is None else wrap(broken)


def _swap(owner: object, attribute: str, old: object, new: object) -> None:
    """Replace one function with another, also where it was imported by name."""
    setattr(owner, attribute, new)
    if not isinstance(owner, ModuleType):
        return
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is old:
                setattr(module, name, new)
