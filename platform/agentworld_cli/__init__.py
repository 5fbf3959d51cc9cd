"""The command line; each command imports the packages that it needs, because some are slow to
import.
"""
