"""Calls slidegate's script `check` on a plain Redis: no server, no daemon, one round trip per request."""

import secrets
from dataclasses import dataclass

import redis


@dataclass(frozen=True)
class Rule:
    """A number of units per window, counted exactly (`sliding-log`)."""

    name: str
    units: int
    window_s: int


@dataclass(frozen=True)
class Decision:
    """All charges were made, or none. `rule` decided it: that with the longest wait, or with the fewest units left.

    Without an answer of Redis only `allowed` and `outage` are known.
    """

    allowed: bool
    rule: Rule | None = None
    left: int | None = None
    retry_after_us: int | None = None
    outage: str | None = None


class Slidegate:
    def __init__(self, client, script):
        # Calls EVALSHA, and loads the script where Redis answers NOSCRIPT.
        self._check = client.register_script(script)

    def check(self, key, charges, allow_in_outage=False):
        """Charges several rules for one key, all or none. `charges` are pairs of rule and cost."""
        # The first argument is the time; empty means the clock of Redis.
        keys, args = [], ["", secrets.randbelow(2**48)]
        for rule, cost in charges:
            if not 1 <= cost <= rule.units:
                raise ValueError(f"never: {cost} units of {rule.name}, which allows {rule.units}")
            keys.append(f"sg:{{{_escaped(key)}}}:{_escaped(rule.name)}")
            args += [cost, "sliding-log", rule.units, rule.window_s * 1_000_000]
        try:
            reply = self._check(keys=keys, args=args)
        except redis.RedisError as error:
            if str(error).startswith("SLIDEGATE arguments"):
                raise
            return Decision(allow_in_outage, outage=str(error))
        # allowed, then per charge: used, retry_after_us, reset_after_us, place.
        answers = [(rule, max(0, rule.units - used), wait)
                   for (rule, _), used, wait in zip(charges, reply[1::4], reply[2::4])]
        allowed = reply[0] == 1
        binding = min(answers, key=lambda answer: answer[1] if allowed else -answer[2])
        return Decision(allowed, *binding)


def _escaped(text):
    """Braces enclose the hash tag of Redis Cluster."""
    return text.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")
