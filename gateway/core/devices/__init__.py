"""Fleet and devices: nodes as columns, machine types with topology, choice of GPUs and NICs."""
