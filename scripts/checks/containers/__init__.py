"""Images and the compose stack: checked at every `scripts/lint`, and run in a real engine by `scripts/test-compose`."""
