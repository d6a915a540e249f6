<?php

declare(strict_types=1);

/** A rule: a number of units per window, counted exactly (`sliding-log`). */
final readonly class Rule
{
    public function __construct(public string $name, public int $units, public int $windowSeconds)
    {
    }
}

/** The verdict of one rule on one charge. */
final readonly class Verdict
{
    public function __construct(public Rule $rule, public int $used, public int $retryAfterUs)
    {
    }

    public function left(): int
    {
        return max(0, $this->rule->units - $this->used);
    }
}

/** The decision on a request: all of its charges were made, or none. */
final readonly class Decision
{
    /** @param list<Verdict> $verdicts one per charge, in their order */
    public function __construct(public bool $allowed, public array $verdicts)
    {
    }

    /** On a denial the rule with the longest wait, on an admission the one with the fewest units left. */
    public function binding(): Verdict
    {
        $verdicts = $this->verdicts;
        usort($verdicts, fn(Verdict $a, Verdict $b) => $this->allowed
            ? $a->left() <=> $b->left()
            : $b->retryAfterUs <=> $a->retryAfterUs);
        return $verdicts[0];
    }
}

/** Calls slidegate's script `check` on a plain Redis: no server, no daemon, one round trip per request. */
final class Slidegate
{
    private string $sha;

    /** @param string $script the output of `slidegate redis script check` */
    public function __construct(private Redis $redis, private string $script)
    {
        $this->sha = sha1($script);
    }

    /**
     * Charges several rules for one key, all or none.
     *
     * @param list<array{Rule, int}> $charges rules and costs
     */
    public function check(string $key, array $charges): Decision
    {
        $keys = [];
        // The first argument is the time; empty means the clock of Redis.
        $args = ['', (string) random_int(0, 2 ** 48 - 1)];
        foreach ($charges as [$rule, $cost]) {
            if ($cost < 1 || $cost > $rule->units) {
                throw new InvalidArgumentException("never: $cost units of {$rule->name}, which allows {$rule->units}");
            }
            $keys[] = 'sg:{' . self::escaped($key) . '}:' . self::escaped($rule->name);
            array_push($args, $cost, 'sliding-log', $rule->units, $rule->windowSeconds * 1_000_000);
        }
        $reply = $this->call($keys, $args);
        $verdicts = [];
        foreach ($charges as $index => [$rule, $cost]) {
            // allowed, then per charge: used, retry after, reset after, place.
            [$used, $retryAfterUs] = array_slice($reply, 1 + 4 * $index, 2);
            $verdicts[] = new Verdict($rule, $used, $retryAfterUs);
        }
        return new Decision($reply[0] === 1, $verdicts);
    }

    /** Calls EVALSHA, or EVAL if Redis does not know the script, which also loads it. */
    private function call(array $keys, array $args): array
    {
        $this->redis->clearLastError();
        $reply = $this->redis->evalSha($this->sha, [...$keys, ...$args], count($keys));
        if ($reply === false && str_starts_with((string) $this->redis->getLastError(), 'NOSCRIPT')) {
            $this->redis->clearLastError();
            $reply = $this->redis->eval($this->script, [...$keys, ...$args], count($keys));
        }
        if (!is_array($reply)) {
            throw new RuntimeException('redis: ' . ($this->redis->getLastError() ?? 'no answer'));
        }
        return $reply;
    }

    /** Escapes braces, which enclose the hash tag of Redis Cluster. */
    private static function escaped(string $text): string
    {
        return strtr($text, ['%' => '%25', '{' => '%7B', '}' => '%7D']);
    }
}
