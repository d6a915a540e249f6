// Calls slidegate's script `check` on a plain Redis: no server, no daemon, one round trip per request.

import { randomInt } from 'node:crypto';

export class Slidegate {
  #redis;
  #lost;

  /** `redis` is a client of ioredis, `script` the output of `slidegate redis script check`. */
  constructor(redis, script) {
    // Calls EVALSHA, and EVAL where Redis answers NOSCRIPT.
    redis.defineCommand('slidegateCheck', { lua: script });
    // Failures are answered call by call; why the connection was lost is only reported here.
    redis.on('error', (error) => { this.#lost = error.message; });
    this.#redis = redis;
  }

  /**
   * Charges several rules for one key, all or none. A charge is `{ rule: { name, units, windowS }, cost }`.
   *
   * The decision has the rule that decided: that with the longest wait, or with the fewest units left. Without an
   * answer of Redis only `allowed` and `outage` are known.
   */
  async check(key, charges, { allowInOutage = false } = {}) {
    // The first argument is the time; empty means the clock of Redis.
    const keys = [];
    const args = ['', randomInt(2 ** 48 - 1)];
    for (const { rule, cost } of charges) {
      if (!(cost >= 1 && cost <= rule.units)) {
        throw new RangeError(`never: ${cost} units of ${rule.name}, which allows ${rule.units}`);
      }
      keys.push(`sg:{${escaped(key)}}:${escaped(rule.name)}`);
      args.push(cost, 'sliding-log', rule.units, rule.windowS * 1_000_000);
    }
    let reply;
    try {
      reply = await this.#redis.slidegateCheck(keys.length, ...keys, ...args);
    } catch (error) {
      if (error.message.startsWith('SLIDEGATE arguments')) throw error;
      return { allowed: allowInOutage, outage: this.#lost ?? error.message };
    }
    // allowed, then per charge: used, retry_after_us, reset_after_us, place.
    const allowed = reply[0] === 1;
    const answers = charges.map(({ rule }, index) => {
      const [used, retryAfterUs] = reply.slice(1 + 4 * index);
      return { allowed, rule, left: Math.max(0, rule.units - used), retryAfterUs };
    });
    answers.sort((a, b) => (allowed ? a.left - b.left : b.retryAfterUs - a.retryAfterUs));
    return answers[0];
  }
}

/** Braces enclose the hash tag of Redis Cluster. */
function escaped(text) {
  return text.replaceAll('%', '%25').replaceAll('{', '%7B').replaceAll('}', '%7D');
}
