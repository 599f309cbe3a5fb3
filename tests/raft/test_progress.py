"""What a leader knows about one follower."""

from kafkaesque.raft.progress import Pace, Progress

WINDOW = 2


def replicating(match: int = 5) -> Progress:
    progress = Progress(match)
    progress.sent(match, match)
    progress.accepted(match, 0)
    return progress


def test_a_new_follower_is_probed_with_one_append_at_a_time() -> None:
    progress = Progress(7)
    assert progress.pace is Pace.PROBE
    assert progress.may_send(WINDOW)
    progress.sent(7, 9)
    assert not progress.may_send(WINDOW)
    assert progress.next == 7


def test_an_accepted_probe_opens_the_window() -> None:
    progress = Progress(7)
    progress.sent(7, 9)
    assert progress.accepted(9, 3)
    assert (progress.pace, progress.match, progress.next) == (Pace.REPLICATE, 9, 9)
    assert progress.commit == 3


def test_the_pipeline_is_never_deeper_than_the_window() -> None:
    progress = replicating()
    progress.sent(5, 6)
    assert progress.may_send(WINDOW)
    progress.sent(6, 7)
    assert not progress.may_send(WINDOW)
    assert progress.next == 7


def test_an_answer_frees_the_window_up_to_its_match() -> None:
    progress = replicating()
    progress.sent(5, 6)
    progress.sent(6, 7)
    progress.accepted(7, 0)
    progress.sent(7, 8)
    assert progress.may_send(WINDOW)


def test_an_old_answer_moves_nothing_back() -> None:
    progress = replicating(8)
    assert not progress.accepted(3, 1)
    assert (progress.match, progress.next) == (8, 8)


def test_a_rejection_goes_back_to_probing_but_never_below_what_matched() -> None:
    progress = replicating(5)
    progress.sent(5, 9)
    progress.rejected(9, 2)
    assert (progress.pace, progress.next, progress.match) == (Pace.PROBE, 5, 5)
    assert progress.rejected_at == 9
    assert progress.may_send(WINDOW)


def test_an_accepted_append_forgets_where_the_logs_differed() -> None:
    progress = Progress(9)
    progress.sent(9, 9)
    progress.rejected(9, 4)
    progress.sent(4, 6)
    progress.accepted(6, 0)
    assert progress.rejected_at is None


def test_a_follower_that_starts_over_is_sent_nothing_until_it_answers() -> None:
    progress = replicating()
    progress.installing()
    assert progress.pace is Pace.PROBE
    assert not progress.may_send(WINDOW)


def test_a_heartbeat_answer_allows_one_more_append() -> None:
    probing = Progress(3)
    probing.sent(3, 4)
    probing.nudge()
    assert probing.may_send(WINDOW)
    full = replicating()
    full.sent(5, 6)
    full.sent(6, 7)
    full.nudge()
    assert full.may_send(WINDOW)


def test_an_empty_append_takes_no_room_in_the_window() -> None:
    progress = replicating(5)
    for _ in range(WINDOW + 1):
        progress.sent(5, 5)
    assert progress.may_send(WINDOW)
