<?php

/*
 * Eight regions, one credential: fetches trending videos until the quota is spent.
 *
 * Every call is charged to the quota that all regions share. The expensive call, search.list, is also charged to a
 * narrower limit, both or neither. At the first denial the job ends, and prints the units left and the wait.
 *
 *   REDIS_HOST, REDIS_PORT    address of Redis; default 127.0.0.1 and 6379
 *   SLIDEGATE_CHECK_SCRIPT    a file with the script; default: the output of `slidegate redis script check`
 *
 * Exit status: 0 all regions were fetched, 1 denied, 2 error.
 */

declare(strict_types=1);

require __DIR__ . '/Slidegate.php';

const REGIONS = ['US', 'GB', 'DE', 'FR', 'IN', 'BR', 'AU', 'CA'];
const COSTS = ['videos.list' => 1, 'channels.list' => 1, 'search.list' => 100];
const CREDENTIAL = 'yt:quota:key1';

function script(): string
{
    $file = getenv('SLIDEGATE_CHECK_SCRIPT');
    $script = $file !== false ? file_get_contents($file) : shell_exec('slidegate redis script check');
    if (!is_string($script) || $script === '') {
        throw new RuntimeException('no script; install slidegate, or name a file in SLIDEGATE_CHECK_SCRIPT');
    }
    return $script;
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
    $search = new Rule('yt-search', 500, 600);
    foreach (REGIONS as $region) {
        foreach (COSTS as $call => $cost) {
            $charges = [[$quota, $cost]];
            if ($call === 'search.list') {
                $charges[] = [$search, $cost];
            }
            $decision = $limiter->check(CREDENTIAL, $charges);
            $binding = $decision->binding();
            $left = "{$binding->left()} of {$binding->rule->units} units left of {$binding->rule->name}";
            if (!$decision->allowed) {
                echo "$region $call $cost: denied, $left, retry in ", wait($binding->retryAfterUs), "\n";
                return 1;
            }
            // Here the upstream would be called.
            echo "$region $call $cost: allowed, $left\n";
        }
    }
    return 0;
}

try {
    $redis = new Redis();
    $redis->connect(getenv('REDIS_HOST') ?: '127.0.0.1', (int) (getenv('REDIS_PORT') ?: 6379));
    exit(fetch_all(new Slidegate($redis, script())));
} catch (Exception $error) {
    fwrite(STDERR, "error: {$error->getMessage()}\n");
    exit(2);
}
