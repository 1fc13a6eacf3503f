"""How well fleets are filled: real nodes and real requests, against published results."""
