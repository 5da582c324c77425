"""The configuration of a home: the sections of omg.toml, and the file itself."""
