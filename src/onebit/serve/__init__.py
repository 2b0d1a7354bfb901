"""The decision service: models over HTTP, each the fold of its log."""
