"""The wires that agents already speak, each over the same entrance."""
