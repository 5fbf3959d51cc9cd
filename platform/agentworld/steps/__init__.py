"""The steps of the pipelines, each a function from folders to a folder."""
