"""What one node of the quota tree has and uses of one (flavor, resource): plain whole numbers.

The arithmetic is Kueue's (KEP-79 hierarchical cohorts): a node keeps part of its quota for itself,
and its parent counts only what the node takes beyond that. All walks are loops up the tree, for
they are the most frequent steps of a cycle. Nothing here knows names, weights or other pairs.
"""

from dataclasses import dataclass

from gateway.core.vocabulary import UNLIMITED

Pair = tuple[str, str]
"""(flavor, resource)."""


@dataclass(slots=True, kw_only=True, eq=False)
class Balance:
    """Amounts of one pair at one node. `subtree` and `kept` hold once the tree was filled."""

    pair: Pair
    above: "Balance | None"
    nominal: int = 0
    borrowing_limit: int = UNLIMITED
    lending_limit: int = UNLIMITED
    subtree: int = 0
    """Own nominal plus what the children lend upwards."""
    kept: int = 0
    """Part of the subtree's quota that nobody outside may take."""
    used: int = 0
    held: int = 0
    """What protections below add to `used` for everybody but their owners."""
    wanted: int = 0
    """Of a queue: the request that it protects unused nominal quota for."""

    def fill(self) -> None:
        """Close the sums of a node whose children are filled, and add its part to the parent's."""
        self.subtree = min(UNLIMITED, self.subtree + self.nominal)
        # Without a limit all is lent and nothing kept: a missing lendingLimit in Kueue's words.
        if self.lending_limit < UNLIMITED:
            self.kept = max(0, self.subtree - self.lending_limit)
        if self.above is not None:
            self.above.subtree += self.subtree - self.kept
            # A parent never sees what a child serves from kept quota: nobody else could have it.
            self.above.used += max(0, self.used - self.kept)

    def add(self, amount: int) -> None:
        """Change the use here, and above by what is not kept. Only while nothing is protected."""
        balance: Balance | None = self
        # It often ends early: what stays within the kept part changes nothing further up.
        while balance is not None and amount:
            kept, before = balance.kept, balance.used
            balance.used = after = before + amount
            amount = (after - kept if after > kept else 0) - (before - kept if before > kept else 0)
            balance = balance.above

    def restate(self, used: int, wanted: int) -> None:
        """Set a queue's use and what it protects, and carry the difference of both upwards.

        All nodes above are a function of the queues' figures, so setting old figures again undoes
        a change exactly, in any order.
        """
        before, claimed = self.used, self.used + self.held
        self.used, self.wanted = used, wanted
        # What is protected shrinks as the queue itself takes it.
        self.held = min(wanted, max(0, self.nominal - used))
        rise = passed(self.kept, used) - passed(self.kept, before)
        claim = passed(self.kept, used + self.held) - passed(self.kept, claimed)
        balance = self.above
        while balance is not None and (rise or claim):
            kept, before, claimed = balance.kept, balance.used, balance.used + balance.held
            balance.used = before + rise
            balance.held = claimed + claim - balance.used
            rise = passed(kept, balance.used) - passed(kept, before)
            claim = passed(kept, claimed + claim) - passed(kept, claimed)
            balance = balance.above

    def available(self) -> int:
        """Give what may still be taken here as if nothing was protected (Kueue: available)."""
        own, balance = 0, self
        most: int | None = None
        while (above := balance.above) is not None:
            kept, used = balance.kept, balance.used
            if used < kept:
                own += kept - used
                used = kept
            if balance.borrowing_limit < UNLIMITED:
                # What is stored above, less what of it is in use, plus the right to borrow.
                within = own + balance.subtree - used + balance.borrowing_limit
                most = within if most is None or within < most else most
            balance = above
        rest = own + balance.subtree - balance.used
        return rest if most is None else min(most, rest)

    def available_beside(self) -> int:
        """Give the same for a queue, with what others protect counted as used, and the own not."""
        own, balance = 0, self
        most: int | None = None
        # How much of the protection below is the queue's own: that must not be in its own way.
        ignored = self.held
        while (above := balance.above) is not None:
            kept, claimed = balance.kept, balance.used + balance.held
            used = claimed - ignored
            ignored = passed(kept, claimed) - passed(kept, used)
            if used < kept:
                own += kept - used
                used = kept
            if balance.borrowing_limit < UNLIMITED:
                within = own + balance.subtree - used + balance.borrowing_limit
                most = within if most is None or within < most else most
            balance = above
        rest = own + balance.subtree - balance.used - balance.held + ignored
        return rest if most is None else min(most, rest)

    def potential(self) -> int:
        """Give the most that could be taken here with all idle (Kueue: potentialAvailable)."""
        own, balance = 0, self
        most: int | None = None
        while (above := balance.above) is not None:
            if balance.borrowing_limit < UNLIMITED:
                within = own + balance.subtree + balance.borrowing_limit
                most = within if most is None or within < most else most
            # Kept quota is there whatever happens above, so it adds to what limits above allow.
            own += balance.kept
            balance = above
        rest = own + balance.subtree
        return rest if most is None else min(most, rest)


def passed(kept: int, used: int) -> int:
    """Give what a parent counts of a child's use."""
    return used - kept if used > kept else 0
