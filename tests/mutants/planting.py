"""All bugs that are planted: by `make mutants`, and in the brokers of `make chaos`."""

from collections.abc import Mapping, Sequence

from tests.mutants.mutation import Mutant
from tests.mutants.planted import MUTANTS
from tests.mutants.planted_answers import ANSWER_MUTANTS
from tests.mutants.planted_batches import BATCH_MUTANTS
from tests.mutants.planted_clocks import CLOCK_MUTANTS
from tests.mutants.planted_cluster import CLUSTER_MUTANTS
from tests.mutants.planted_cluster_members import CLUSTER_MEMBER_MUTANTS
from tests.mutants.planted_cluster_transactions import CLUSTER_TRANSACTION_MUTANTS
from tests.mutants.planted_copies import COPY_MUTANTS
from tests.mutants.planted_install import INSTALL_MUTANTS
from tests.mutants.planted_limits import LIMIT_MUTANTS
from tests.mutants.planted_links import LINK_MUTANTS
from tests.mutants.planted_moves import MOVE_MUTANTS
from tests.mutants.planted_queues import QUEUE_MUTANTS
from tests.mutants.planted_repairs import REPAIR_MUTANTS
from tests.mutants.planted_salvage import SALVAGE_MUTANTS
from tests.mutants.planted_seals import SEAL_MUTANTS
from tests.mutants.planted_server import SERVER_MUTANTS
from tests.mutants.planted_settings import SETTING_MUTANTS
from tests.mutants.planted_shares import (
    SHARE_ADMIN_MUTANTS,
    SHARE_KIND_MUTANTS,
    SHARE_MUTANTS,
)
from tests.mutants.planted_shares_broker import SHARE_BROKER_MUTANTS
from tests.mutants.planted_tails import TAIL_MUTANTS
from tests.mutants.planted_unreadable import UNREADABLE_MUTANTS
from tests.mutants.planted_voters import VOTER_MUTANTS

PLANTED: Sequence[Mutant] = (
    *MUTANTS,
    *CLUSTER_MUTANTS,
    *MOVE_MUTANTS,
    *VOTER_MUTANTS,
    *INSTALL_MUTANTS,
    *CLUSTER_TRANSACTION_MUTANTS,
    *CLUSTER_MEMBER_MUTANTS,
    *BATCH_MUTANTS,
    *CLOCK_MUTANTS,
    *LINK_MUTANTS,
    *LIMIT_MUTANTS,
    *COPY_MUTANTS,
    *REPAIR_MUTANTS,
    *SEAL_MUTANTS,
    *SETTING_MUTANTS,
    *TAIL_MUTANTS,
    *SALVAGE_MUTANTS,
    *UNREADABLE_MUTANTS,
    *SERVER_MUTANTS,
    *SHARE_MUTANTS,
    *SHARE_KIND_MUTANTS,
    *QUEUE_MUTANTS,
    *SHARE_ADMIN_MUTANTS,
    *SHARE_BROKER_MUTANTS,
)
"""In the order in which `make mutants` hunts them."""

EVERY: Mapping[str, Mutant] = {mutant.name: mutant for mutant in (*PLANTED, *ANSWER_MUTANTS)}
"""By name, also those that only real clients notice."""
