"""How a rule is broken: one piece of one function's source is replaced, for as long as a test runs.

The text to replace must occur exactly once, so that a mutant cannot silently stop mutating when the
code around it changes.
"""

import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType, ModuleType

from kafkaesque.sim.many import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One planted bug: in `target`, written `module:Class.method`, `old` becomes `new`."""

    name: str
    target: str
    old: str
    new: str
    world: Kind = Kind.LOGS
    """Whose seeds are to notice it."""

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Break the rule inside the block, mend it afterwards."""
        owner, attribute = self._place()
        original = inspect.getattr_static(owner, attribute)
        broken = self._broken(original)
        _swap(owner, attribute, original, broken)
        try:
            yield
        finally:
            _swap(owner, attribute, broken, original)

    def _place(self) -> tuple[object, str]:
        module_name, _, path = self.target.partition(":")
        owner: object = importlib.import_module(module_name)
        *parents, attribute = path.split(".")
        for parent in parents:
            owner = getattr(owner, parent)
        return owner, attribute

    def _broken(self, original: object) -> object:
        function = original
        wrap: type | None = None
        if isinstance(original, property):
            function, wrap = original.fget, property
        elif isinstance(original, classmethod):
            function, wrap = original.__func__, classmethod
        assert isinstance(function, FunctionType), f"{self.target} is not a function"
        source = textwrap.dedent(inspect.getsource(function))
        assert source.count(self.old) == 1, f"{self.name}: the text to break is not there once"
        source = source.replace(self.old, self.new)
        if wrap is not None:
            source = source[source.index("def ") :]
        names: dict[str, object] = {}
        exec(compile(source, f"<mutant {self.name}>", "exec"), function.__globals__, names)
        broken = names[function.__name__]
        return broken if wrap is None else wrap(broken)


def _swap(owner: object, attribute: str, old: object, new: object) -> None:
    """Put one function in the place of another, also where it was imported by its name."""
    setattr(owner, attribute, new)
    if not isinstance(owner, ModuleType):
        return
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is old:
                setattr(module, name, new)
