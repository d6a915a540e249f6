// Eight regions, one credential: fetches trending videos within a day's quota. README.md describes it.
//
// Exit status: 0 every call was made, 1 denied, 2 error, or calls were not made because Redis did not answer.

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { Slidegate } from './slidegate.js';

const REGIONS = ['US', 'GB', 'DE', 'FR', 'IN', 'BR', 'AU', 'CA'];
const CREDENTIAL = 'yt:quota:key1';
// The upstream allows 10,000 units a day; at 9,500, our denial comes before its error.
const QUOTA = { name: 'yt-quota', units: 9_500, windowS: 86_400 };
const SEARCH = { name: 'yt-search', units: 1_000, windowS: 600 };
// Rules and costs of a call, both or neither charged, and whether it is made while Redis is down.
const CALLS = {
  'videos.list 1': { charges: [{ rule: QUOTA, cost: 1 }], allowInOutage: true },
  'search.list 100': {
    charges: [{ rule: QUOTA, cost: 100 }, { rule: SEARCH, cost: 100 }],
    allowInOutage: false,
  },
};

/** Rounded up, so that the wait is long enough. */
function wait(us) {
  const seconds = Math.ceil(us / 1_000_000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  if (hours > 0) return `${hours}h${minutes}m`;
  return minutes > 0 ? `${minutes}m${seconds % 60}s` : `${seconds}s`;
}

async function fetchAll(limiter) {
  let [skipped, outage] = [0, ''];
  for (const region of REGIONS) {
    for (const [call, { charges, allowInOutage }] of Object.entries(CALLS)) {
      const decision = await limiter.check(CREDENTIAL, charges, { allowInOutage });
      let answer = decision.allowed ? 'allowed without Redis' : 'not made without Redis';
      if (decision.outage !== undefined) {
        outage = decision.outage;
        skipped += decision.allowed ? 0 : 1;
      } else {
        const left = `${decision.left} of ${decision.rule.units} units left of ${decision.rule.name}`;
        answer = `allowed, ${left}`;
        if (!decision.allowed) {
          console.log(`${region} ${call}: denied, ${left}, retry in ${wait(decision.retryAfterUs)}`);
          return 1;
        }
      }
      // Here the upstream would be called, if the call is allowed.
      console.log(`${region} ${call}: ${answer}`);
    }
  }
  if (skipped > 0) console.error(`error: ${skipped} calls were not made; Redis: ${outage}`);
  return skipped > 0 ? 2 : 0;
}

async function main() {
  const ioredis = await import('ioredis').catch(() => undefined);
  if (ioredis === undefined) {
    console.error('error: the package ioredis is missing; `npm install` installs it');
    return 2;
  }
  const script = process.env.SLIDEGATE_CHECK_SCRIPT ?? fileURLToPath(new URL('check.lua', import.meta.url));
  if (!existsSync(script)) {
    console.error(`error: ${script} is missing; \`slidegate redis script check\` prints it`);
    return 2;
  }
  const redis = new ioredis.Redis({
    host: process.env.REDIS_HOST ?? '127.0.0.1',
    port: Number(process.env.REDIS_PORT ?? 6379),
    connectTimeout: 250,
    commandTimeout: 250,
    disconnectTimeout: 250,
    // A call without a reply may have been charged, so it is not sent again.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    // Without a connection calls fail at once, and it is opened again in the background.
    lazyConnect: true,
    enableOfflineQueue: false,
    retryStrategy: () => 100,
  });
  const limiter = new Slidegate(redis, readFileSync(script, 'utf8'));
  await redis.connect().catch(() => {});
  const code = await fetchAll(limiter);
  redis.disconnect();
  return code;
}

process.exitCode = await main();
