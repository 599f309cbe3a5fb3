"""Planted bugs in the limits on the state that clients leave behind; a test should notice."""

from tests.mutants.mutation import Mutant

LIMIT_MUTANTS = (
    Mutant(
        name="a note beside an offset counts as its encoded bytes",
        target="kafkaesque.machines.groups.group_offsets:size_of",
        old="chars_bytes(value.metadata)",
        new="len(value.metadata.encode())",
    ),
)
