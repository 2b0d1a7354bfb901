"""The decision service: models behind an address, each the fold of its log."""
