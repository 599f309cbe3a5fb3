"""Groups change their protocol while their members keep running."""

from dataclasses import replace

import pytest

from kafkaesque.coordinator_config import MigrationPolicy
from kafkaesque.machines.groups.consumer_commands import AWAY
from kafkaesque.machines.groups.group import ClassicGroup
from kafkaesque.machines.groups.group_commands import Committed, Protocol
from kafkaesque.machines.groups.group_errors import (
    GroupChangesKind,
    IllegalGeneration,
    InconsistentProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownGroup,
    UnknownMember,
)
from kafkaesque.machines.groups.mixed_group import MixedGroup
from tests.machines.consumer_desk import CONFIG, Reader
from tests.machines.group_desk import GROUP, PLACE, SESSION_MS, subscription
from tests.machines.mixed_desk import MixedDesk, OldReader

ALL = frozenset(("orders", index) for index in range(4))


def classic_group(*readers: OldReader) -> MixedDesk:
    desk = MixedDesk()
    desk.run(*readers)
    assert desk.state == "Stable"
    assert sorted(p for one in readers for p in one.owned) == sorted(ALL)
    return desk


def together(desk: MixedDesk, old: list[OldReader], new: list[Reader], seconds: int = 12) -> None:
    """Let readers of both kinds run, and check that no two of them read the same partition."""
    for _ in range(seconds * 2):
        for reader in old:
            desk.go_on(reader)
            apart(desk, old, new)
        for one in new:
            desk.send(one)
            one.obey()
            apart(desk, old, new)
        desk.pass_ms(500)


def apart(desk: MixedDesk, old: list[OldReader], new: list[Reader]) -> None:
    read = [p for one in old for p in one.owned] + [p for n in new for p in desk.named(n.owned)]
    assert len(read) == len(set(read)), "two members read the same partition"


@pytest.mark.parametrize("is_cooperative", [True, False])
def test_a_classic_group_is_upgraded_while_its_members_keep_running(is_cooperative: bool) -> None:
    old = [OldReader(name, is_cooperative) for name in ("a", "b")]
    desk = classic_group(*old)
    before = desk.generation
    assert isinstance(desk.commit(7, old[0].member_id, old[0].generation), Committed)
    new = Reader("new")
    together(desk, old, [new])
    assert desk.consumers.state == "Stable"
    assert desk.consumers.epoch > before
    assert sorted([len(new.owned), *(len(one.owned) for one in old)]) == [1, 1, 2]
    assert {one.generation for one in old} == {desk.consumers.epoch}
    kept = desk.committed(PLACE)
    assert kept is not None
    assert kept.offset == 7


@pytest.mark.parametrize("is_cooperative", [True, False])
def test_it_is_downgraded_when_only_classic_members_are_left(is_cooperative: bool) -> None:
    old = [OldReader(name, is_cooperative) for name in ("a", "b")]
    desk = classic_group(*old)
    new = Reader("new")
    together(desk, old, [new])
    epoch = desk.consumers.epoch
    assert isinstance(desk.commit_as(new, new.epoch), Committed)
    desk.leave_group(new)
    assert isinstance(desk.machine.group(GROUP), ClassicGroup)
    together(desk, old, [])
    assert (desk.state, desk.generation > epoch) == ("Stable", True)
    assert sorted(p for one in old for p in one.owned) == sorted(ALL)
    assert desk.committed(PLACE) is not None


def test_when_the_other_members_fall_silent_the_group_is_downgraded() -> None:
    old = OldReader("a")
    desk = classic_group(old)
    together(desk, [old], [Reader("new")])
    desk.run(old, seconds=20)
    assert desk.state == "Stable"
    assert old.owned == ALL


def test_the_first_rebalance_after_a_downgrade_is_announced() -> None:
    old = OldReader("a")
    desk = classic_group(old)
    new = Reader("new")
    together(desk, [old], [new])
    desk.leave_group(new)
    desk.pass_ms(50)
    error = desk.heartbeat(old.member_id, old.generation)
    assert isinstance(error, RebalanceInProgress), "it may go on committing until it joins"
    assert isinstance(desk.commit(3, old.member_id, old.generation), Committed)


def test_a_restart_in_between_changes_nothing() -> None:
    old = [OldReader(name) for name in ("a", "b")]
    desk = classic_group(*old)
    new = Reader("new")
    desk.send(new)
    desk.restart()
    together(desk, old, [new])
    assert desk.consumers.state == "Stable"
    desk.leave_group(new)
    desk.restart()
    together(desk, old, [])
    assert sorted(p for one in old for p in one.owned) == sorted(ALL)


def test_classic_members_can_join_a_group_whose_coordinator_assigns() -> None:
    desk = MixedDesk()
    new, old = Reader("new"), OldReader("a")
    desk.settle(new)
    together(desk, [old], [new])
    assert (len(old.owned), len(new.owned)) == (2, 2)
    shown = desk.consumers.view().consumers
    assert shown is not None
    assert [one.is_classic for one in shown.members] == [False, True]


def test_a_partition_is_reassigned_only_when_its_classic_reader_has_revoked_it() -> None:
    old = OldReader("a")
    desk = classic_group(old)
    new = Reader("new")
    desk.send(new)
    assert new.told == frozenset()
    assert isinstance(desk.heartbeat(old.member_id, old.generation), RebalanceInProgress)
    joined = desk.join(old.member_id, old.protocol).joined
    assert joined.generation == old.generation, "it stays in its epoch until it has revoked it"
    assert joined.leader == ""
    desk.send(new)
    assert new.told == frozenset()
    desk.sync(old.member_id, joined.generation)
    lost = desk.consumers.members[old.member_id].revoking
    old.owned = ALL - desk.named(lost)
    again = desk.join(old.member_id, old.protocol).joined
    assert again.generation > joined.generation
    desk.send(new)
    assert new.told == lost


def test_partitions_that_a_cooperative_member_is_revoking_are_not_free_after_an_upgrade() -> None:
    one, two = OldReader("a"), OldReader("b")
    desk = classic_group(one)
    while one.generation == 1 or one.waits is None:  # until its assignment is in progress
        desk.go_on(two)
        desk.go_on(one)
    desk.go_on(two)
    assert desk.state == "Stable"
    assert one.owned == ALL
    new = Reader("new")
    desk.send(new)
    assert new.told == frozenset()
    together(desk, [one, two], [new])
    assert new.owned


def test_a_member_that_does_not_rejoin_in_time_is_removed() -> None:
    old = OldReader("a")
    desk = classic_group(old)
    new = Reader("new")
    group_of = desk.machine.group
    for _ in range(40):
        desk.send(new)
        new.obey()
        desk.heartbeat(old.member_id, old.generation)
        desk.pass_ms(1_000)
    group = group_of(GROUP)
    assert isinstance(group, MixedGroup)
    assert list(group.members) == ["new"]
    assert desk.named(new.owned) == ALL


def test_a_classic_members_session_timeout_applies() -> None:
    old = OldReader("a")
    desk = classic_group(old)
    new = Reader("new")
    together(desk, [old], [new])
    for _ in range(SESSION_MS // 1_000 + 2):
        desk.send(new)
        new.obey()
        desk.pass_ms(1_000)
    assert list(desk.consumers.members) == ["new"]
    assert isinstance(desk.heartbeat(old.member_id, old.generation), UnknownMember)


def test_an_old_generation_cannot_commit() -> None:
    old = OldReader("a")
    desk = classic_group(old)
    before = old.generation
    together(desk, [old], [Reader("new")])
    assert isinstance(desk.commit(1, old.member_id, before), IllegalGeneration)
    assert isinstance(desk.heartbeat(old.member_id, before), IllegalGeneration)
    assert isinstance(desk.sync(old.member_id, before).error, IllegalGeneration)
    assert isinstance(desk.commit(1, old.member_id, old.generation), Committed)


def test_a_rebalancing_group_is_upgraded_when_it_is_stable() -> None:
    desk = MixedDesk()
    first = desk.enter(OldReader("a").protocol)
    new = Reader("new")
    assert isinstance(desk.send(new), GroupChangesKind)
    joined = first.joined
    assert isinstance(desk.send(new), GroupChangesKind)
    desk.sync(joined.member_id, joined.generation)
    desk.send(new)
    assert new.refused is None


def test_a_waiting_member_of_an_upgraded_group_has_to_rejoin() -> None:
    old = OldReader("a")
    desk = classic_group(old)
    late = desk.enter(OldReader("b").protocol)
    assert late.answer is None
    desk.send(Reader("new"))
    assert isinstance(late.error, RebalanceInProgress)
    assert list(desk.consumers.members) == [old.member_id, "new"]


def test_an_instance_changes_its_protocol_under_its_name() -> None:
    old = OldReader("a", instance="i")
    desk = classic_group(old)
    new = Reader("new", instance="i")
    desk.settle(new)
    assert desk.named(new.owned) == ALL
    assert list(desk.consumers.members) == ["new"]
    desk.leave_group(new, will_be_back=True)
    assert desk.consumers.members["new"].epoch == AWAY
    back = OldReader("a", instance="i")
    together(desk, [back], [])
    assert desk.state == "Stable", "only classic members are left"
    assert back.owned == ALL


def test_a_member_uses_only_one_protocol() -> None:
    old = OldReader("a")
    desk = classic_group(old)
    new = Reader("new")
    together(desk, [old], [new])
    assert isinstance(desk.heartbeat("new", new.epoch), UnknownMember)
    assert isinstance(desk.sync("new", new.epoch).error, UnknownMember)
    assert isinstance(desk.join("new", old.protocol).error, UnknownMember)
    posing = Reader(old.member_id, epoch=old.generation)
    assert isinstance(desk.send(posing), UnknownMember)


def test_newcomers_must_be_compatible_with_the_classic_members() -> None:
    old = OldReader("a")
    desk = classic_group(old)
    desk.send(Reader("new"))
    other = Protocol("another", subscription("orders"))
    assert isinstance(desk.join("", other).error, InconsistentProtocol)
    strange = Protocol("cooperative-sticky", b"?")
    assert isinstance(desk.join("", strange).error, InconsistentProtocol)
    assert isinstance(desk.join("", old.protocol).error, MemberIdRequired)


@pytest.mark.parametrize("assignment", [b"part", b"\0\0\0\0\0\0\0\0\0\1x"])
def test_a_group_with_a_custom_assignor_is_not_upgraded(assignment: bytes) -> None:
    desk = MixedDesk()
    joined = desk.enter(OldReader("a").protocol).joined
    desk.sync(joined.member_id, joined.generation, (joined.member_id, assignment))
    assert isinstance(desk.send(Reader("new")), UnknownGroup)
    assert isinstance(desk.group, ClassicGroup)


def test_a_non_consumer_group_is_not_upgraded() -> None:
    desk = MixedDesk()
    joined = desk.join("", protocol_type="connect", knows_member_ids=False).joined
    desk.sync(joined.member_id, joined.generation)
    assert isinstance(desk.send(Reader("new")), UnknownGroup)


@pytest.mark.parametrize(
    ("policy", "may_upgrade", "may_downgrade"),
    [
        (MigrationPolicy.DISABLED, False, False),
        (MigrationPolicy.UPGRADE, True, False),
        (MigrationPolicy.DOWNGRADE, False, True),
        (MigrationPolicy.BIDIRECTIONAL, True, True),
    ],
)
def test_groups_are_converted_only_as_the_policy_allows(
    policy: MigrationPolicy, may_upgrade: bool, may_downgrade: bool
) -> None:
    config = replace(CONFIG, consumer_migration_policy=policy)
    desk = MixedDesk(config)
    old, new = OldReader("a"), Reader("new")
    desk.run(old)
    desk.send(new)
    assert (new.refused is None) == may_upgrade
    desk = MixedDesk(config)
    desk.settle(new := Reader("new"))
    if policy is MigrationPolicy.DISABLED:
        assert isinstance(desk.join("", old.protocol).error, InconsistentProtocol)
        return
    old = OldReader("a")
    together(desk, [old], [new])
    desk.leave_group(new)
    desk.run(old)
    assert isinstance(desk.machine.group(GROUP), ClassicGroup) == may_downgrade
    assert old.owned == ALL
