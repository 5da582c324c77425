"""What a prompt is given: the decision, and the words of the slice."""
