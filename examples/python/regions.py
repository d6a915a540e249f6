"""Eight regions, one credential: fetches trending videos within a day's quota. README.md describes it.

Exit status: 0 every call was made, 1 denied, 2 error, or calls were not made because Redis did not answer.
"""

import os
import sys
from pathlib import Path

try:
    import redis
except ModuleNotFoundError:
    print("error: the package redis is missing; `pip install redis` installs it", file=sys.stderr)
    sys.exit(2)

from slidegate import Rule, Slidegate

REGIONS = ["US", "GB", "DE", "FR", "IN", "BR", "AU", "CA"]
CREDENTIAL = "yt:quota:key1"
# The upstream allows 10,000 units a day; at 9,500, our denial comes before its error.
QUOTA = Rule("yt-quota", 9_500, 86_400)
SEARCH = Rule("yt-search", 1_000, 600)
# Rules and costs of a call, both or neither charged, and whether it is made while Redis is down.
CALLS = {
    "videos.list 1": ([(QUOTA, 1)], True),
    "search.list 100": ([(QUOTA, 100), (SEARCH, 100)], False),
}


def wait(us):
    """Rounded up, so that the wait is long enough."""
    seconds = -(-us // 1_000_000)
    hours, minutes = seconds // 3600, seconds // 60 % 60
    return f"{hours}h{minutes}m" if hours else f"{minutes}m{seconds % 60}s" if minutes else f"{seconds}s"


def fetch_all(limiter):
    skipped, outage = 0, None
    for region in REGIONS:
        for call, (charges, allow_in_outage) in CALLS.items():
            decision = limiter.check(CREDENTIAL, charges, allow_in_outage)
            if decision.outage is not None:
                answer = "allowed without Redis" if decision.allowed else "not made without Redis"
                skipped, outage = skipped + (not decision.allowed), decision.outage
            else:
                left = f"{decision.left} of {decision.rule.units} units left of {decision.rule.name}"
                answer = f"allowed, {left}"
                if not decision.allowed:
                    print(f"{region} {call}: denied, {left}, retry in {wait(decision.retry_after_us)}")
                    return 1
            # Here the upstream would be called, if the call is allowed.
            print(f"{region} {call}: {answer}")
    if skipped:
        print(f"error: {skipped} calls were not made; Redis: {outage}", file=sys.stderr)
    return 2 if skipped else 0


def main():
    script = Path(os.environ.get("SLIDEGATE_CHECK_SCRIPT", Path(__file__).with_name("check.lua")))
    if not script.exists():
        print(f"error: {script} is missing; `slidegate redis script check` prints it", file=sys.stderr)
        return 2
    client = redis.Redis(
        host=os.environ.get("REDIS_HOST", "127.0.0.1"),
        port=int(os.environ.get("REDIS_PORT", "6379")),
        socket_connect_timeout=0.25,
        socket_timeout=0.25,
        # A call without a reply may have been charged, so it is not sent again.
        retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0),
        decode_responses=True,
    )
    return fetch_all(Slidegate(client, script.read_text()))


if __name__ == "__main__":
    sys.exit(main())
