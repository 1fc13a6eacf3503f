"""The conformance suite of launch back ends, to be subclassed once for each of them."""

from tests.contract.backends.suite_creating import CreatingSuite
from tests.contract.backends.suite_ending import EndingSuite
from tests.contract.backends.suite_starting import StartingSuite


class LaunchBackendSuite(CreatingSuite, StartingSuite, EndingSuite):
    """All behaviours; the subclass (named Test...) brings a fixture `harness`."""
