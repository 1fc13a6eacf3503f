"""Jobs as the core sees them: shape of a gang, waiting jobs as columns, the state machine."""
