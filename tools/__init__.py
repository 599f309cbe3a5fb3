"""What builds and checks the repository itself; never part of the package."""
