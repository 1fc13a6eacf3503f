"""Lets the assertions of the suite's modules explain themselves."""

import pytest

pytest.register_assert_rewrite(
    "tests.contract.backends.suite_creating",
    "tests.contract.backends.suite_starting",
    "tests.contract.backends.suite_ending",
    "tests.contract.backends.steps",
)
