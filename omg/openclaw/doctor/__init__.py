"""The doctor: what is wrong with gateway, home and graphs, and how to mend it."""
