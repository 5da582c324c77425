"""The folder of one identity: pending turns, archive, state, locks, tombstones."""
