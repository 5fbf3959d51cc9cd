"""An auditor's questions, one for each module."""
