"""The Reflector: a cycle of tidying, and reflections on weeks and months."""
