"""The rules of the repository, which every file must follow."""
