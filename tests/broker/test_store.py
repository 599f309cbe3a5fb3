"""One node's data folder: created, closed, opened, found damaged."""

import pytest

from kafkaesque.entry import Entry, TermOpened, Voters
from kafkaesque.log.errors import CorruptLog
from kafkaesque.log.journal import PATH
from kafkaesque.log.journal_frames import read_state
from kafkaesque.raft.messages import VoteRequest, VoteResponse
from kafkaesque.raft.raft import Role
from kafkaesque.sim.inode import CrashPolicy
from tests.broker.nodes import ALONE, GROUP, THREE, Node, a_batch, append, entry
from tests.log.stores import flip, journal_bytes, replace_file
from tests.sim.disks import contents

BATCHES = 20


def a_filled_follower() -> Node:
    """A follower with some batches in several segments, all synced and committed."""
    node = Node()
    entries = [Entry(0, 1, 1, TermOpened())]
    for number in range(BATCHES):
        batch = a_batch(b"value %d" % number, base=number, term=1)
        entries.append(entry(1 + number, 1, batch))
    node.step(append(1, 0, *entries, commit=1 + BATCHES))
    assert len(node.values()) == BATCHES
    return node


def damaged(node: Node) -> Node:
    """Let the last segment lose synced bytes while the node is down, and start it again."""

    def cut() -> None:
        file = node.disk.open(node.segment(-1))
        file.truncate(file.size() // 2)
        node.disk.sync_now([file], [])

    node.restart(after=cut)
    return node


def vote_request(term: int) -> VoteRequest:
    return VoteRequest(
        source=2, target=1, term=term, last_term=9, end=99, is_pre=False, is_forced=True
    )


def test_closing_and_opening_restores_everything() -> None:
    node = a_filled_follower()
    before = node.values()
    node.restart()
    assert node.values() == before
    assert node.replica.raft.term == 1
    assert node.replica.raft.voters == THREE
    assert not node.replica.raft.is_recovering


def test_after_a_clean_stop_a_power_loss_loses_nothing() -> None:
    node = a_filled_follower()
    before = node.values()
    node.restart(after=lambda: node.disk.crash(CrashPolicy.TORN))
    assert node.values() == before


def test_a_clean_stop_writes_what_is_buffered_in_memory() -> None:
    node = Node(ALONE)
    node.replica.campaign()
    node.sync()
    node.holds_syncs = True
    node.replica.log.allow_holes()  # an operation: later ones wait for its sync
    node.propose(b"waits")
    assert node.disk.open(node.segment(-1)).size() == 0
    node.restart(after=lambda: node.disk.crash(CrashPolicy.DROP_UNSYNCED))
    assert node.values() == [b"waits"]


def test_a_node_keeps_its_id() -> None:
    node = Node()
    node.restart()
    assert node.store.journal.node == 1


def test_a_forgotten_group_is_gone_from_the_journal_and_its_files_stay() -> None:
    node = a_filled_follower()
    files = node.disk.list(GROUP)
    node.store.forget(GROUP)
    node.store.close()
    node.disk.kill()
    store = node._open_store()
    assert GROUP not in store.journal.groups
    assert node.disk.list(GROUP) == files


@pytest.mark.parametrize("way", ["forget", "leave"])
def test_releasing_a_log_does_not_wait_for_the_disk(way: str) -> None:
    node = Node(ALONE)
    node.replica.campaign()
    node.sync()
    node.holds_syncs = True
    node.propose(b"nobody will read it")
    before = node.disk.syncs
    getattr(node.store, way)(GROUP)
    assert node.disk.syncs == before


def test_a_group_that_left_keeps_its_term_and_returns_empty_and_without_a_vote() -> None:
    node = a_filled_follower()
    node.store.leave(GROUP)
    node.store.close()
    node.disk.kill()
    node.start()
    assert node.values() == []
    assert node.replica.raft.term == 2, (
        "the next term, because it acknowledged entries in the last one"
    )
    assert node.replica.raft.voters == Voters(voters=())
    node.step(vote_request(9))
    (answer,) = [message for message in node.sent if isinstance(message, VoteResponse)]
    assert not answer.is_granted


def test_leaving_twice_is_the_same_as_leaving_once() -> None:
    node = a_filled_follower()
    assert not node.store.has_left(GROUP)
    node.store.leave(GROUP)
    node.store.leave(GROUP)
    assert node.store.has_left(GROUP)
    assert node.store.journal.groups[GROUP].hard_state.term == 2


@pytest.mark.requirement("LOG-4")
def test_a_log_with_damaged_synced_data_is_set_aside_and_nothing_is_deleted() -> None:
    node = a_filled_follower()
    damaged_path = node.segment(-1)
    logs = [name for name in node.disk.list(GROUP) if name.endswith(".log")]
    before = {name: contents(node.disk, f"{GROUP}/{name}") for name in logs}
    damaged(node)
    after = {name: contents(node.disk, f"{GROUP}/{name}.1.damaged") for name in logs}
    assert len(logs) > 1
    for name in logs:
        is_damaged = f"{GROUP}/{name}" == damaged_path
        assert after[name] == before[name][: len(before[name]) // 2 if is_damaged else None]
    assert node.values() == []


@pytest.mark.requirement("LOG-4")
def test_a_replica_whose_log_was_damaged_does_not_vote() -> None:
    node = damaged(a_filled_follower())
    assert node.replica.raft.is_recovering
    node.step(vote_request(9))
    (answer,) = [message for message in node.sent if isinstance(message, VoteResponse)]
    assert not answer.is_granted
    node.tick(40)
    calls = [message for message in node.sent if isinstance(message, VoteRequest)]
    assert all(call.is_pre for call in calls), "it only announces itself"
    assert node.replica.raft.role is Role.FOLLOWER


@pytest.mark.requirement("LOG-4")
def test_a_lost_vote_is_remembered_across_restarts() -> None:
    node = damaged(a_filled_follower())
    node.disk.crash(CrashPolicy.TORN)
    node.start()
    assert node.replica.raft.is_recovering


def test_a_refilled_replica_votes_again_and_remembers_that_too() -> None:
    node = damaged(a_filled_follower())
    opened = Entry(0, 1, 1, TermOpened())
    mine = Entry(2, 3, 9, TermOpened())
    batch = entry(1, 1, a_batch(b"value 0", term=1))
    node.step(append(9, 0, opened, batch, mine, commit=3))
    assert not node.replica.raft.is_recovering
    node.restart()
    assert not node.replica.raft.is_recovering
    assert node.values() == [b"value 0"]


def test_files_of_a_second_damage_get_new_names() -> None:
    node = damaged(a_filled_follower())
    first = {name for name in node.disk.list(GROUP) if name.endswith(".damaged")}
    node.store.refill_log(GROUP, CorruptLog(GROUP, 0, "found by a reader"))
    second = {name for name in node.disk.list(GROUP) if name.endswith(".2.damaged")}
    assert second
    assert first < set(node.disk.list(GROUP))


def test_a_log_that_was_set_aside_writes_nothing_more_for_its_group() -> None:
    node = a_filled_follower()
    node.holds_syncs = True
    end = node.replica.raft.end
    node.step(append(9, end, Entry(end, end + 1, 9, TermOpened()), prev_term=1))
    batch = entry(end + 1, 9, a_batch(b"late", base=BATCHES, term=9))
    node.step(append(9, end + 1, batch, prev_term=9))  # waits until the mark before it is synced
    damage = CorruptLog(GROUP, 0, "found by a reader")
    node.replica.stop(damage)
    node.store.refill_log(GROUP, damage)
    anew = node.store.open_log(GROUP)
    node.sync()
    assert anew.stable == anew.end == 0
    state = node.store.journal.groups[GROUP]
    assert state.marks.total == 0
    assert state.synced is None or state.synced.end_offset == 0


def flip_bit_while_down(node: Node, place: int) -> None:
    """Flip a bit of a record in a segment of a stopped node, which recovery does not check."""
    file = node.disk.open(node.segment(place))
    position = file.size() - 2
    (byte,) = file.read(position, 1)
    file.write(position, bytes([byte ^ 1]))
    node.disk.sync_now([file], [])


@pytest.mark.parametrize("place", [0, 1, -1])
def test_the_log_of_a_machine_is_checked_completely_when_it_is_opened(place: int) -> None:
    node = a_filled_follower()
    node.store.close()
    node.disk.kill()
    flip_bit_while_down(node, place)
    node.later.waiting.clear()
    store = node._open_store()
    before = node.disk.list(GROUP)
    with pytest.raises(CorruptLog) as raised:
        store.open_log(GROUP, has_machine=True)
    assert node.disk.list(GROUP) == before, "nothing changes until it is set aside"
    store.refill_log(GROUP, raised.value)
    assert store.open_log(GROUP, has_machine=True).end == 0
    assert [name for name in node.disk.list(GROUP) if name.endswith(".damaged")]


def test_a_sound_log_of_a_machine_is_opened_unchanged() -> None:
    node = a_filled_follower()
    end = node.replica.log.end
    node.store.close()
    node.disk.kill()
    node.later.waiting.clear()
    assert node._open_store().open_log(GROUP, has_machine=True).end == end


def test_a_damaged_single_voter_needs_an_operator() -> None:
    node = Node(ALONE)
    node.tick(20)
    for number in range(BATCHES):
        node.propose(b"value %d" % number)
    before = node.disk.list(GROUP)
    with pytest.raises(CorruptLog):
        damaged(node)
    assert node.disk.list(GROUP) == before


def test_a_closed_store_records_everything_as_synced() -> None:
    node = a_filled_follower()
    node.store.close()
    synced = node.store.journal.groups[GROUP].synced
    assert synced is not None
    assert synced.end_offset == BATCHES


@pytest.mark.parametrize(("copy", "place"), [("first", 30), ("second", -30)])
@pytest.mark.complains(
    "journal_mended node=1 copy=*: one of the two copies of the journal's state was *"
)
@pytest.mark.event("journal_mended")
def test_a_damaged_copy_of_the_journals_state_is_repaired_and_reported(
    copy: str, place: int, caplog: pytest.LogCaptureFixture
) -> None:
    node = a_filled_follower()
    before = node.values()

    def flipped() -> None:
        whole = journal_bytes(node.disk)
        assert read_state(whole).is_whole
        replace_file(node.disk, PATH, flip(whole, place % len(whole)))

    node.restart(after=flipped)
    (said,) = [text for text in caplog.messages if text.startswith("journal_mended")]
    assert f"node=1 copy={copy}:" in said
    node.restart()
    assert (node.store.journal.damaged_copy, node.values()) == ("", before)
    assert len([text for text in caplog.messages if text.startswith("journal_mended")]) == 1
