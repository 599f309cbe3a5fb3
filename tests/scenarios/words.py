"""How a scenario's trace shows entries, messages and replicas: one short line each.

An entry is `index:what/term`, as in `0:open/1 1-3:a/1 4:voters(1,2)/1`; a position in a log is
`index@term`, the index and the term of the entry before it.
"""

from collections.abc import Sequence

from kafkaesque.entry import Entry, LogStart, TermOpened, Voters
from kafkaesque.raft.messages import (
    AppendAccepted,
    AppendRejected,
    AppendRequest,
    CoreMessage,
    Heartbeat,
    HeartbeatResponse,
    InstallRequest,
    TimeoutNow,
    VoteRequest,
    VoteResponse,
)
from kafkaesque.raft.ports import Ready


def group(voters: Voters) -> str:
    """The voters, and after a plus the learners."""
    learners = "".join(f"+{node}" for node in voters.learners)
    return ",".join(map(str, voters.voters)) + learners


def entry(entry: Entry) -> str:
    match entry.payload:
        case TermOpened():
            what = "open"
        case Voters():
            what = f"voters({group(entry.payload)})"
        case data:
            what = bytes(data).decode()
    return f"{span(entry)}:{what}/{entry.term}"


def span(entry: Entry) -> str:
    last = entry.end - 1
    return str(entry.first) if last == entry.first else f"{entry.first}-{last}"


def entries(entries: Sequence[Entry]) -> str:
    return " ".join(map(entry, entries)) or "nothing"


def log(start: LogStart, held: Sequence[Entry]) -> str:
    """The whole log, with what was trimmed and what compaction removed."""
    words = [f"({start.index}@{start.prev_term})"] if start.index else []
    end = start.index
    for one in held:
        if one.first > end:
            words.append(f"{end}..{one.first - 1}:gone")
        words.append(entry(one))
        end = one.end
    return " ".join(words) or "empty"


def message(message: CoreMessage) -> str:
    return f"{message.source}->{message.target} {_said(message)}"


def _said(message: CoreMessage) -> str:
    term = f"t{message.term}"
    match message:
        case VoteRequest(is_pre=is_pre, is_forced=is_forced, end=end, last_term=last_term):
            kind = ("PreVote" if is_pre else "Vote") + (" forced" if is_forced else "")
            return f"{kind} {term} log={end}@{last_term}"
        case VoteResponse(is_pre=is_pre, is_granted=is_granted):
            kind = "PreVote" if is_pre else "Vote"
            return f"{kind} {'granted' if is_granted else 'refused'} {term}"
        case AppendRequest(prev_end=prev, prev_term=prev_term, commit=commit):
            what = entries(message.entries)
            return f"Append {term} after={prev}@{prev_term} commit={commit} [{what}]"
        case AppendAccepted(match=match, commit=commit):
            return f"Accepted {term} match={match} commit={commit}"
        case AppendRejected(prev_end=prev, hint=hint):
            return f"Rejected {term} after={prev} hint={hint}"
        case Heartbeat(commit=commit):
            return f"Heartbeat {term} commit={commit}"
        case HeartbeatResponse(commit=commit):
            return f"Alive {term} commit={commit}"
        case InstallRequest(start=start):
            return f"Install {term} start={start.index}@{start.prev_term} of {group(start.voters)}"
        case TimeoutNow():
            return f"TimeoutNow {term}"


def ready(ready: Ready) -> list[str]:
    """A replica's `Ready` without its messages: those show when they arrive."""
    lines = []
    if ready.hard_state is not None:
        lines.append(f"saves term {ready.hard_state.term} vote {ready.hard_state.vote or 'none'}")
    if ready.has_lost:
        lines.append("lacks what it acknowledged")
    if ready.install is not None:
        lines.append(f"starts over at {ready.install.index}@{ready.install.prev_term}")
    if ready.truncate is not None:
        lines.append(f"cuts at {ready.truncate}")
    if ready.append:
        lines.append(f"appends {entries(ready.append)}")
    if ready.is_recovered:
        lines.append("has recovered")
    if ready.commit is not None:
        lines.append(f"commits up to {ready.commit}")
    return lines
