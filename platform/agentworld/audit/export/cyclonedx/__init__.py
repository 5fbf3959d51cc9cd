"""An agent's AI bill of materials, in CycloneDX 1.7 (decision 0062)."""
