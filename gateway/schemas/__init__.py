"""The wire: pydantic models of what users send and see. No behaviour beyond validation."""
