"""The page (`omg ui`): a person sees what is remembered and why it was given, and corrects it, in a browser."""
