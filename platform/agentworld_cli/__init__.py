"""The command line: words in, calls out; heavy rooms are entered by the command that needs them."""
