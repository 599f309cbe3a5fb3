"""Tools that build and check the repository; never part of the package."""
