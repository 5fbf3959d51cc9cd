"""The custom resources: the fields of their specs and statuses."""
