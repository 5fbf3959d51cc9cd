"""The hardest question to a predicted observation: is it the true one."""


def exact_match(predicted: str, truth: str) -> bool:
    """Every character, but for empty lines at either end, which no parser keeps."""
    return predicted.strip("\n") == truth.strip("\n")
