"""How near the engine comes to the best there is, judged by a constraint solver."""
