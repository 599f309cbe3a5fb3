"""The rules of the house: what every file of the repository keeps to."""
