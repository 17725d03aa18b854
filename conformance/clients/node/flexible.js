// rate-limiter-flexible, over ioredis and over node-redis, alone and over a cluster.
'use strict';
const assert = require('node:assert');
const Redis = require('ioredis');
const redis = require('redis');
const { RateLimiterRedis, RateLimiterMemory, RateLimiterQueue, RateLimiterUnion, RLWrapperBlackAndWhite, BurstyRateLimiter } = require('rate-limiter-flexible');
const { client, sleep, tryWays, options } = require('./harness.js');

// letsIn counts how many of n requests at once are let in.
async function letsIn(limiter, n, key) {
  const results = await Promise.allSettled(Array.from({ length: n }, () => limiter.consume(key)));
  const wrong = results.find((r) => r.status === 'rejected' && r.reason instanceof Error);
  if (wrong) throw wrong.reason;
  return results.filter((r) => r.status === 'fulfilled').length;
}

module.exports = async (at) => {
  const check = client('rate-limiter-flexible');
  const storeClient = new Redis({ host: '127.0.0.1', port: at.plain, db: 5 });
  const nodeRedis = redis.createClient({ socket: { host: '127.0.0.1', port: at.plain }, database: 5, disableOfflineQueue: true });
  const cluster = new Redis.Cluster([{ host: '127.0.0.1', port: at.cluster }]);
  await nodeRedis.connect();
  await tryWays(at, check, async (way) => {
    const r = new Redis({ ...options(way), maxRetriesPerRequest: 0 });
    r.on('error', () => {});
    try {
      await new RateLimiterRedis({ storeClient: r, points: 100, duration: 60, keyPrefix: 'way' }).consume('u');
    } finally { r.disconnect(); }
  });
  for (const [over, store] of [['ioredis', { storeClient }], ['node-redis', { storeClient: nodeRedis, useRedisPackage: true }], ['a cluster', { storeClient: cluster }]]) {
    await check('script', `10 of 15 requests are let in, over ${over}, each of 20 keys`, async () => {
      const limiter = new RateLimiterRedis({ ...store, points: 10, duration: 60, keyPrefix: `flex ${over}` });
      const all = await Promise.all(Array.from({ length: 20 }, (_, i) => letsIn(limiter, 15, `user${i}`)));
      assert.deepStrictEqual(new Set(all), new Set([10]));
      const refused = await limiter.consume('user1').catch((e) => e);
      assert.ok(refused.msBeforeNext > 50000 && refused.msBeforeNext <= 60000, `wait ${refused.msBeforeNext}`);
    });
  }
  await check('script', 'a script of the user, and scripts that the server has lost', async () => {
    const lua = `local n = redis.call('incrby', KEYS[1], ARGV[1])
      if n == tonumber(ARGV[1]) then redis.call('expire', KEYS[1], ARGV[2]) end
      return {n, redis.call('pttl', KEYS[1])}`;
    const limiter = new RateLimiterRedis({ storeClient, points: 3, duration: 60, keyPrefix: 'own', customIncrTtlLuaScript: lua });
    assert.strictEqual(await letsIn(limiter, 2, 'u'), 2);
    await storeClient.script('FLUSH');
    assert.strictEqual(await letsIn(limiter, 2, 'u'), 1);
  });
  await check('features', 'block, penalty, reward, get, set, delete', async () => {
    const limiter = new RateLimiterRedis({ storeClient, points: 5, duration: 60, blockDuration: 100, keyPrefix: 'block' });
    await limiter.consume('u', 3);
    await limiter.penalty('u', 1);
    await limiter.reward('u', 2);
    assert.strictEqual((await limiter.get('u')).consumedPoints, 2);
    await limiter.set('u', 4, 30);
    assert.strictEqual((await limiter.get('u')).remainingPoints, 1);
    await limiter.block('u', 30);
    await assert.rejects(limiter.consume('u', 1), (r) => r.msBeforeNext > 25000);
    assert.ok(await limiter.delete('u'));
    assert.strictEqual(await limiter.get('u'), null);
    assert.strictEqual((await limiter.consume('u')).remainingPoints, 4);
  });
  await check('features', 'blocked for longer than the window once over the limit', async () => {
    const limiter = new RateLimiterRedis({ storeClient, points: 1, duration: 1, blockDuration: 50, keyPrefix: 'long' });
    await limiter.consume('u');
    await assert.rejects(limiter.consume('u'), (r) => r.msBeforeNext > 45000);
  });
  await check('features', 'window ends; bursts', async () => {
    const limiter = new RateLimiterRedis({ storeClient, points: 1, duration: 1, keyPrefix: 'window' });
    const bursty = new BurstyRateLimiter(limiter, new RateLimiterRedis({ storeClient, points: 2, duration: 10, keyPrefix: 'burst' }));
    for (let i = 0; i < 3; i++) await bursty.consume('u');
    await assert.rejects(bursty.consume('u'));
    await sleep(1050);
    await bursty.consume('u');
  });
  await check('features', 'insurance while the server is away', async () => {
    const away = new Redis({ host: '127.0.0.1', port: 1, enableOfflineQueue: false, maxRetriesPerRequest: 0, retryStrategy: null });
    away.on('error', () => {});
    const limiter = new RateLimiterRedis({
      storeClient: away, points: 5, duration: 60, keyPrefix: 'away', rejectIfRedisNotReady: true,
      insuranceLimiter: new RateLimiterMemory({ points: 2, duration: 60 }),
    });
    assert.strictEqual(await letsIn(limiter, 4, 'u'), 2);
    away.disconnect();
  });
  await check('features', 'a queue: 5 at 4 a second in order', async () => {
    const queue = new RateLimiterQueue(new RateLimiterRedis({ storeClient, points: 4, duration: 1, keyPrefix: 'queue' }), { maxQueueSize: 5 });
    const order = [];
    const began = Date.now();
    await Promise.all([0, 1, 2, 3, 4].map((i) => queue.removeTokens(1, 'u').then(() => order.push(i))));
    assert.deepStrictEqual(order, [0, 1, 2, 3, 4]);
    assert.ok(Date.now() - began > 500, `5 at once in ${Date.now() - began} ms`);
  });
  await check('features', 'evenly; blocked in memory; union; black and white lists', async () => {
    const even = new RateLimiterRedis({ storeClient, points: 4, duration: 1, execEvenly: true, keyPrefix: 'even' });
    const began = Date.now();
    await even.consume('u');
    await even.consume('u');
    assert.ok(Date.now() - began > 150, `2 of 4 a second in ${Date.now() - began} ms`);
    const memory = new RateLimiterRedis({ storeClient, points: 2, duration: 60, inMemoryBlockOnConsumed: 2, keyPrefix: 'memory' });
    assert.strictEqual(await letsIn(memory, 2, 'u'), 2);
    await assert.rejects(memory.consume('u'));
    assert.strictEqual(await storeClient.get('memory:u'), '2');
    const union = new RateLimiterUnion(
      new RateLimiterRedis({ storeClient, points: 1, duration: 60, keyPrefix: 'union one' }), new RateLimiterRedis({ storeClient, points: 5, duration: 60, keyPrefix: 'union two' }));
    await union.consume('u');
    const refused = await union.consume('u').catch((e) => e);
    assert.deepStrictEqual(Object.keys(refused), ['union one']);
    const lists = new RLWrapperBlackAndWhite({
      limiter: new RateLimiterRedis({ storeClient, points: 1, duration: 60, keyPrefix: 'lists' }), whiteList: ['friend'], blackList: ['foe'],
    });
    for (let i = 0; i < 3; i++) await lists.consume('friend');
    await assert.rejects(lists.consume('foe'));
    assert.strictEqual(await storeClient.exists('lists:friend', 'lists:foe'), 0);
  });
  storeClient.disconnect();
  nodeRedis.destroy();
  cluster.disconnect();
};
