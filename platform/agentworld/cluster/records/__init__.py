"""The custom resources: what their specs and statuses hold."""
