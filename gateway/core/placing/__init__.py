"""Where a gang could go: nodes its rules allow, and the room that is left on them."""
