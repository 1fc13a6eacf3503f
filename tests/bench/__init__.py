"""Benchmarks: each program measures beside a yardstick of the same run and prints JSON lines."""
