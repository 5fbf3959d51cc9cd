"""The custom resources: records from which the CRDs are written. No cluster is known here."""
