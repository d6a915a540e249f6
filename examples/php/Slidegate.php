<?php

declare(strict_types=1);

/** A rule: a number of units per window, counted exactly (`sliding-log`). */
final readonly class Rule
{
    public function __construct(public string $name, public int $units, public int $windowSeconds)
    {
    }
}

/**
 * All charges were made, or none. `rule` decided it: that with the longest wait, or with the fewest units left.
 * Without an answer of Redis only `allowed` and `outage` are known.
 */
final readonly class Decision
{
    public function __construct(
        public bool $allowed,
        public ?Rule $rule = null,
        public ?int $left = null,
        public ?int $retryAfterUs = null,
        public ?string $outage = null,
    ) {
    }
}

/** Calls slidegate's script `check` on a plain Redis: no server, no daemon, one round trip per request. */
final class Slidegate
{
    private const TIMEOUT_SECONDS = 0.25;
    private ?Redis $redis = null;

    /** @param string $script the output of `slidegate redis script check` */
    public function __construct(private string $host, private int $port, private string $script)
    {
    }

    /**
     * Charges several rules for one key, all or none.
     *
     * @param list<array{Rule, int}> $charges rules and costs
     */
    public function check(string $key, array $charges, bool $allowInOutage = false): Decision
    {
        // The first argument is the time; empty means the clock of Redis.
        [$keys, $args] = [[], ['', (string) random_int(0, 2 ** 48 - 1)]];
        foreach ($charges as [$rule, $cost]) {
            if ($cost < 1 || $cost > $rule->units) {
                throw new InvalidArgumentException("never: $cost units of {$rule->name}, which allows {$rule->units}");
            }
            $keys[] = 'sg:{' . self::escaped($key) . '}:' . self::escaped($rule->name);
            array_push($args, $cost, 'sliding-log', $rule->units, $rule->windowSeconds * 1_000_000);
        }
        try {
            $reply = $this->call($keys, $args);
        } catch (RedisException $error) {
            if (str_starts_with($error->getMessage(), 'SLIDEGATE arguments')) {
                throw $error;
            }
            // A late reply must not answer the next call, and this one may have been charged: it is not sent again.
            $this->redis = null;
            return new Decision($allowInOutage, outage: $error->getMessage());
        }
        // allowed, then per charge: used, retry_after_us, reset_after_us, place.
        $decisions = array_map(fn(array $charge, array $answer) => new Decision(
            $reply[0] === 1, $charge[0], max(0, $charge[0]->units - $answer[0]), $answer[1],
        ), $charges, array_chunk(array_slice($reply, 1), 4));
        usort($decisions, fn(Decision $a, Decision $b) => $a->allowed
            ? $a->left <=> $b->left
            : $b->retryAfterUs <=> $a->retryAfterUs);
        return $decisions[0];
    }

    /** Calls EVALSHA, or EVAL if Redis does not know the script, which also loads it. */
    private function call(array $keys, array $args): array
    {
        if ($this->redis === null) {
            $redis = new Redis();
            $redis->connect($this->host, $this->port, self::TIMEOUT_SECONDS, null, 0, self::TIMEOUT_SECONDS);
            $this->redis = $redis;
        }
        $arguments = [[...$keys, ...$args], count($keys)];
        $this->redis->clearLastError();
        $reply = $this->redis->evalSha(sha1($this->script), ...$arguments);
        if ($reply === false && str_starts_with((string) $this->redis->getLastError(), 'NOSCRIPT')) {
            $this->redis->clearLastError();
            $reply = $this->redis->eval($this->script, ...$arguments);
        }
        return is_array($reply) ? $reply : throw new RedisException($this->redis->getLastError() ?? 'no answer');
    }

    /** Escapes braces, which enclose the hash tag of Redis Cluster. */
    private static function escaped(string $text): string
    {
        return strtr($text, ['%' => '%25', '{' => '%7B', '}' => '%7D']);
    }
}
