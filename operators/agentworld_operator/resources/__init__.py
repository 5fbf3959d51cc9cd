"""The custom resources: records from which the CRDs are generated.

No client of a cluster is used here.
"""
