<?php

/*
 * Eight regions, one credential: fetches trending videos within a day's quota. README.md describes it.
 *
 * Exit status: 0 every call was made, 1 denied, 2 error, or calls were not made because Redis did not answer.
 */

declare(strict_types=1);

require __DIR__ . '/Slidegate.php';

const REGIONS = ['US', 'GB', 'DE', 'FR', 'IN', 'BR', 'AU', 'CA'];
const CREDENTIAL = 'yt:quota:key1';

function fail(string $problem): int
{
    fwrite(STDERR, "error: $problem\n");
    return 2;
}

/** Rounded up, so that the wait is long enough. */
function wait(int $us): string
{
    $seconds = intdiv($us + 999_999, 1_000_000);
    [$hours, $minutes] = [intdiv($seconds, 3600), intdiv($seconds, 60) % 60];
    return match (true) {
        $hours > 0 => "{$hours}h{$minutes}m",
        $minutes > 0 => $minutes . 'm' . $seconds % 60 . 's',
        default => "{$seconds}s",
    };
}

function fetch_all(Slidegate $limiter): int
{
    // The upstream allows 10,000 units a day; at 9,500, our denial comes before its error.
    $quota = new Rule('yt-quota', 9_500, 86_400);
    $search = new Rule('yt-search', 1_000, 600);
    // Rules and costs of a call, both or neither charged, and whether it is made while Redis is down.
    $calls = [
        'videos.list 1' => [[[$quota, 1]], true],
        'search.list 100' => [[[$quota, 100], [$search, 100]], false],
    ];
    [$skipped, $outage] = [0, ''];
    foreach (REGIONS as $region) {
        foreach ($calls as $call => [$charges, $allowInOutage]) {
            $decision = $limiter->check(CREDENTIAL, $charges, $allowInOutage);
            if ($decision->outage !== null) {
                $answer = $decision->allowed ? 'allowed without Redis' : 'not made without Redis';
                [$skipped, $outage] = [$skipped + ($decision->allowed ? 0 : 1), $decision->outage];
            } else {
                $left = "{$decision->left} of {$decision->rule->units} units left of {$decision->rule->name}";
                $answer = "allowed, $left";
                if (!$decision->allowed) {
                    echo "$region $call: denied, $left, retry in ", wait($decision->retryAfterUs), "\n";
                    return 1;
                }
            }
            // Here the upstream would be called, if the call is allowed.
            echo "$region $call: $answer\n";
        }
    }
    return $skipped > 0 ? fail("$skipped calls were not made; Redis: $outage") : 0;
}

function main(): int
{
    if (!extension_loaded('redis')) {
        return fail('the extension redis is missing; on Debian `apt-get install php-redis` installs it');
    }
    $script = getenv('SLIDEGATE_CHECK_SCRIPT') ?: __DIR__ . '/check.lua';
    if (!is_file($script)) {
        return fail("$script is missing; `slidegate redis script check` prints it");
    }
    [$host, $port] = [getenv('REDIS_HOST') ?: '127.0.0.1', (int) (getenv('REDIS_PORT') ?: 6379)];
    return fetch_all(new Slidegate($host, $port, file_get_contents($script)));
}

exit(main());
