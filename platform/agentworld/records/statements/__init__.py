"""Signed statements other than the logs of runs: one module for each kind, and their table in
`base`.
"""
