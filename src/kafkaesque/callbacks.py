"""What to pass, or to keep as the default, where nobody needs to be called back."""


def ignore(*_: object) -> None:
    """Do nothing with an outcome or an event."""
