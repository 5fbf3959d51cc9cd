"""The pages: what each of them reads, and the template that shows it."""
