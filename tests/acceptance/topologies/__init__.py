"""The page on topologies, drawn by the product."""
