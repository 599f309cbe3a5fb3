"""Planted bugs in the answers of brokers, which only real clients can notice.

They are hunted by `python -m tests.chaos STORY --mutant NAME`.
"""

from tests.mutants.mutation import Mutant

ANSWER_MUTANTS = (
    Mutant(
        name="a reused sequence is reported as a duplicate",
        target="kafkaesque.server.requests.errors:code_of",
        old="return CODES[cls]",
        new=(
            "is_behind = cls is partition_errors.SequenceReused\n"
            "            return ErrorCode.DUPLICATE_SEQUENCE_NUMBER if is_behind else CODES[cls]"
        ),
    ),
)
