"""Whether what is recorded is what was signed; each file checks what its name says."""
