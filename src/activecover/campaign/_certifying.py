"""How much is left: the bound that the labels so far prove, and the statement that an auditor can keep."""

from __future__ import annotations

from activecover.campaign._certificate import Certificate, certify, record_of
from activecover.campaign._proposing import Proposing
from activecover.stopping import Assessment, Budget, MissedComponent, Record, Rule, make_rule, missed_component

#: What is looked at where a campaign was begun without a promise: it needs no draws of its own.
_BY_DEFAULT = "weighted-betting"
#: The promise is looked at each time the labels have grown by this share: all looks together stay linear.
_GROWTH = 0.02


class Certifying(Proposing):
    """What a campaign can promise."""

    def assess(self, rule: Rule | None = None) -> Assessment:
        """What is proved of recall by now, on what assumptions, and the price of the target.

        Parameters
        ----------
        rule : Rule, optional
            By default the one that the campaign was begun with, or its budget if that is first; where it was
            begun without, weighted betting for .95 with confidence .95.

        Examples
        --------
        >>> from activecover import Campaign, Pool
        >>> campaign = Campaign(Pool([[0.0], [1.0], [2.0]]))
        >>> campaign.tell(["0", "1"], [True, False])
        >>> said = campaign.assess()
        >>> said.recall_lower, said.remaining_upper
        (0.5, 1)
        """
        with self._turn():
            if rule is not None:
                return rule.assess(self.asks())
            if self._assessed is None or self._assessed[0] != self._position:
                own = self._promise or make_rule(_BY_DEFAULT)
                limited = own if self.budget is None else own | Budget(self.budget)
                self._assessed = (self._position, limited.assess(self.asks()))
            return self._assessed[1]

    def asks(self) -> Record:
        """The asks so far, in order, as stopping rules look at them: to replay the campaign against any rule."""
        with self._turn():
            return record_of(self._ledger, self.pool, self._mixer)

    def bounds(self) -> list[float]:
        """The bound on recall after each ask, by the rule of :meth:`assess`."""
        with self._turn():
            rule = self._promise or make_rule(_BY_DEFAULT)
            return [float(value) for value in rule.recall_lower(self.asks())]

    def missed_component(self, confidence: float = 0.95) -> MissedComponent:
        """How large a group of rows can still be of which no uniform draw has hit one."""
        with self._turn():
            return missed_component(self.asks(), confidence)

    def certificate(self, rule: Rule | None = None, *, name: str | None = None) -> Certificate:
        """The statement to keep, once the log was found to be as it was written."""
        with self._turn():
            self.log.verify()
            return certify(list(self.log.read()), self.pool, rule=rule, budget=self.budget, name=name)

    @property
    def blind(self) -> bool:
        """Whether people must not see where items come from: control rows are among them."""
        if self._mixer is None or self._mixer.control is None:
            return False
        # Without a turn, as it is asked for often: what others wrote meanwhile can only end it.
        with self._lock:
            return self._is_blind()

    def _is_blind(self) -> bool:
        return self._mixer is not None and self._mixer.control is not None and self._certified() is None

    def _promise_in_words(self) -> str | None:
        """How far the promise is, without a word that would tell a control row from others."""
        if self._promise is None:
            return None
        aim = f"recall {self._promise.target:g} with confidence {self._promise.confidence:g} by {self._promise.name}"
        return f"{aim}: {'certified' if self._certified() is not None else 'not yet'}"

    def _certified(self) -> float | None:
        """The recall that was certified as promised; none as long as it was not."""
        if self._promise is None:
            return None
        labels = self._ledger.count("positive", "negative")
        last = self._looked
        if last is None or not last[0] <= labels < last[0] + max(1, int(_GROWTH * last[0])):
            last = self._looked = (labels, float(self._promise.recall_lower(self.asks())[-1]))
        return last[1] if last[1] >= self._promise.target - 1e-12 else None
