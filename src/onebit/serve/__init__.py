"""The decision service: models over HTTP, each determined by its log."""
