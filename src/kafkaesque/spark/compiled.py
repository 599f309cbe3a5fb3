"""Compiles the few loops that run once per record, and copies bytes inside them.

numba compiles a loop on its first call and caches the result beside the source file, so that the
next process only loads it.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])

compiled = cast(Callable[[F], F], njit(cache=True, nogil=True))
"""Marks a function of arrays and integers for compilation on its first call."""

inlined = cast(Callable[[F], F], njit(cache=True, nogil=True, inline="always"))
"""Like `compiled`, but inlined into its callers, which are compiled too."""


def _copy_bytes(
    context: Any, target: Any, target_at: Any, source: Any, source_at: Any, count: Any
) -> Any:
    """Return the type and code of `copy_bytes`: one memcpy instead of a loop over bytes."""
    signature = types.void(target, types.int64, source, types.int64, types.int64)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target, target_at, source, source_at, count = arguments
        into = context.make_array(signature.args[0])(context, builder, target)
        out_of = context.make_array(signature.args[2])(context, builder, source)
        cgutils.raw_memcpy(
            builder,
            builder.gep(into.data, [target_at]),
            builder.gep(out_of.data, [source_at]),
            count,
            1,
        )
        return context.get_dummy_value()

    return signature, code


copy_bytes = intrinsic(_copy_bytes)
"""`copy_bytes(target, at, source, at, count)` between byte arrays; callers check the bounds."""
