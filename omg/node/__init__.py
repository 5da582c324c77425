"""A note as a value: frontmatter, markdown, the table of maps. No I/O."""
