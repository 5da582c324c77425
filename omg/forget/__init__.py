"""Forgetting: what goes, the erasing itself, and every trace elsewhere."""
