"""What the labels so far prove: the bound on recall, the promise of the campaign, and its certificate."""

from __future__ import annotations

from activecover.campaign._certificate import Certificate, certify, record_of
from activecover.campaign._journal import Journal
from activecover.campaign._mixer import Mixer
from activecover.stopping import Assessment, Budget, MissedComponent, Record, Rule, make_rule, missed_component

#: The rule for campaigns that began without a promise: it needs no draws of its own.
_BY_DEFAULT = "weighted-betting"
#: The promise is checked each time the labels have grown by this share, so that all checks together stay linear.
_GROWTH = 0.02


class Guarantee:
    """What a campaign promises, and what it can prove by now.

    Contract: everything is worked out from the ledger; nothing is written. While :attr:`blind`, control rows must
    stay unknown to everyone who labels.

    Parameters
    ----------
    journal : Journal
        Of the campaign.
    rule : Rule or None
        What is to be certified.
    mixer : Mixer or None
        Draws the control sample, the audit and the random share.
    budget : int or None
        Most labels.
    """

    def __init__(self, journal: Journal, rule: Rule | None, mixer: Mixer | None, budget: int | None) -> None:
        self._journal, self.rule, self.mixer, self._budget = journal, rule, mixer, budget
        self._assessed: tuple[tuple[int, int], Assessment] | None = None
        #: The ledger's rebuilds and labels at the last check of the promise, and the bound then.
        self._checked: tuple[int, int, float] | None = None

    def assess(self, rule: Rule | None = None) -> Assessment:
        """What is proved of recall by now, on what assumptions, and the price of the target."""
        with self._journal.view():
            if rule is not None:
                return rule.assess(self.record())
            state = self._journal.state
            if self._assessed is None or self._assessed[0] != state:
                own = self.rule or make_rule(_BY_DEFAULT)
                limited = own if self._budget is None else own | Budget(self._budget)
                self._assessed = state, limited.assess(self.record())
            return self._assessed[1]

    def record(self) -> Record:
        """The asks so far, in order, as stopping rules see them."""
        with self._journal.view() as ledger:
            return record_of(ledger, self._journal.pool, self.mixer)

    def bounds(self) -> list[float]:
        """The bound on recall after each ask, by the rule of :meth:`assess`."""
        with self._journal.view():
            rule = self.rule or make_rule(_BY_DEFAULT)
            return [float(value) for value in rule.recall_lower(self.record())]

    def missed_component(self, confidence: float = 0.95) -> MissedComponent:
        """The largest group of rows that uniform draws can have missed entirely."""
        return missed_component(self.record(), confidence)

    def certificate(self, rule: Rule | None = None, *, name: str | None = None) -> Certificate:
        """The statement to keep, once the log was found to be as it was written."""
        with self._journal.view():
            self._journal.log.verify()
            lines = list(self._journal.log.read())
            return certify(lines, self._journal.pool, rule=rule, budget=self._budget, name=name)

    @property
    def blind(self) -> bool:
        """Whether people must not see where items come from, as control rows are among them."""
        if self.mixer is None or self.mixer.control is None:
            return False
        # The log is not read for it, as it is asked for often: what others wrote meanwhile can only end it.
        with self._journal.lock:
            return self.certified() is None

    def certified(self) -> float | None:
        """The recall that was certified as promised; None as long as it was not."""
        if self.rule is None:
            return None
        labels, rebuilt = self._journal.ledger.count("positive", "negative"), self._journal.rebuilt
        last = self._checked
        if last is None or last[0] != rebuilt or not last[1] <= labels < last[1] + max(1, int(_GROWTH * last[1])):
            record = record_of(self._journal.ledger, self._journal.pool, self.mixer)
            last = self._checked = rebuilt, labels, float(self.rule.recall_lower(record)[-1])
        return last[2] if last[2] >= self.rule.target - 1e-12 else None

    def in_words(self) -> str | None:
        """The state of the promise, without a word that would distinguish a control row."""
        if self.rule is None:
            return None
        aim = f"recall {self.rule.target:g} with confidence {self.rule.confidence:g} by {self.rule.name}"
        return f"{aim}: {'certified' if self.certified() is not None else 'not yet'}"
