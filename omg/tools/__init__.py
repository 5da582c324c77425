"""What the agent's tools, the /omg command and memory_search are answered."""
