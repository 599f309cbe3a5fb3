"""The damage matrix: every kind of damage in every place, and what notices it."""
