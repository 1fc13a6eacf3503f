"""HTTP: parse, call the service, answer. No decision is taken here."""
