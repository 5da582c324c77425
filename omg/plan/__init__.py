"""What is to be written: drafts of notes, and the generated pages that list them."""
