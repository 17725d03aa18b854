// rate-limiter-flexible, over ioredis.
'use strict';
const assert = require('node:assert');
const Redis = require('ioredis');
const { RateLimiterRedis, BurstyRateLimiter } = require('rate-limiter-flexible');
const { client, sleep } = require('./harness.js');

module.exports = async (at) => {
  const check = client('rate-limiter-flexible');
  const storeClient = new Redis({ host: '127.0.0.1', port: at.plain, db: 5 });
  await check('script', '10 of 15 requests are let in', async () => {
    const limiter = new RateLimiterRedis({ storeClient, points: 10, duration: 60, keyPrefix: 'flex' });
    const results = await Promise.allSettled(Array.from({ length: 15 }, () => limiter.consume('user')));
    assert.strictEqual(results.filter((r) => r.status === 'fulfilled').length, 10);
    const refused = results.find((r) => r.status === 'rejected').reason;
    assert.ok(refused.msBeforeNext > 55000 && refused.msBeforeNext <= 60000, `wait ${refused.msBeforeNext}`);
  });
  await check('features', 'block, penalty, reward, get, delete', async () => {
    const limiter = new RateLimiterRedis({ storeClient, points: 5, duration: 60, blockDuration: 100, keyPrefix: 'block' });
    await limiter.consume('u', 3);
    await limiter.penalty('u', 1);
    await limiter.reward('u', 2);
    assert.strictEqual((await limiter.get('u')).consumedPoints, 2);
    await limiter.block('u', 30);
    await assert.rejects(limiter.consume('u', 1), (r) => r.msBeforeNext > 25000);
    assert.ok(await limiter.delete('u'));
    assert.strictEqual((await limiter.consume('u')).remainingPoints, 4);
  });
  await check('features', 'window ends; bursts', async () => {
    const limiter = new RateLimiterRedis({ storeClient, points: 1, duration: 1, keyPrefix: 'window' });
    const bursty = new BurstyRateLimiter(limiter, new RateLimiterRedis({ storeClient, points: 2, duration: 10, keyPrefix: 'burst' }));
    for (let i = 0; i < 3; i++) await bursty.consume('u');
    await assert.rejects(bursty.consume('u'));
    await sleep(1050);
    await bursty.consume('u');
  });
  storeClient.disconnect();
};
