// ioredis, which speaks RESP2.
'use strict';
const assert = require('node:assert');
const Redis = require('ioredis');
const { client, sleep, password } = require('./harness.js');

module.exports = async (at) => {
  const check = client('ioredis');
  const using = async (options, f) => {
    const r = new Redis({ host: '127.0.0.1', port: at.plain, maxRetriesPerRequest: 0, retryStrategy: null, ...options });
    r.on('error', () => {});
    try { await f(r); } finally { r.disconnect(); }
  };
  await check('connect', 'RESP2: set, get, hash, sorted set', () => using({}, async (r) => {
    await r.set('k', 'v', 'EX', 60);
    await r.del('h', 'z');
    await r.hset('h', { a: 1, b: 'two' });
    await r.zadd('z', 1.5, 'm', 2, 'n');
    assert.strictEqual(await r.get('k'), 'v');
    assert.deepStrictEqual(await r.hgetall('h'), { a: '1', b: 'two' });
    assert.deepStrictEqual(await r.zrange('z', 0, -1, 'WITHSCORES'), ['m', '1.5', 'n', '2']);
  }));
  await check('auth', 'password, and refusal of a wrong one', async () => {
    await using({ port: at.secret, password }, async (r) => assert.strictEqual(await r.ping(), 'PONG'));
    await using({ port: at.secret, password: 'wrong' }, (r) => assert.rejects(r.ping()));
  });
  await check('tls', 'server certificate verified', () => using({ port: at.secure, tls: { ca: at.ca } }, async (r) => assert.strictEqual(await r.ping(), 'PONG')));
  await check('unix', 'unix socket', () => using({ path: at.socket }, async (r) => assert.strictEqual(await r.ping(), 'PONG')));
  await check('pipeline', '1000 commands, and automatic pipelining', () => using({ enableAutoPipelining: true }, async (r) => {
    const p = r.pipeline().del('n');
    for (let i = 0; i < 1000; i++) p.incr('n');
    assert.strictEqual((await p.exec())[1000][1], 1000);
    const all = await Promise.all(Array.from({ length: 100 }, () => r.incr('n')));
    assert.strictEqual(Math.max(...all), 1100);
  }));
  await check('transaction', 'MULTI, and a watched key that changes', () => using({}, async (r) => {
    assert.deepStrictEqual(await r.multi().set('t', 1).incr('t').exec(), [[null, 'OK'], [null, 2]]);
    await r.watch('t');
    await using({}, (o) => o.set('t', 5));
    assert.strictEqual(await r.multi().incr('t').exec(), null);
  }));
  await check('script', 'defineCommand: EVALSHA, NOSCRIPT, EVAL', () => using({}, async (r) => {
    await r.script('FLUSH');
    await r.del('s');
    r.defineCommand('add', { numberOfKeys: 1, lua: "return {redis.call('INCRBY', KEYS[1], ARGV[1]), cjson.encode({a = 1})}" });
    assert.deepStrictEqual(await r.add('s', 5), [5, '{"a":1}']);
    assert.deepStrictEqual(await r.add('s', 5), [10, '{"a":1}']);
  }));
  await check('pubsub', 'channel and pattern', () => using({}, (sub) => using({}, async (r) => {
    const got = [];
    sub.on('message', (c, m) => got.push([c, m]));
    sub.on('pmessage', (p, c, m) => got.push([p, c, m]));
    await sub.subscribe('direct');
    await sub.psubscribe('news.*');
    await r.publish('direct', 'one');
    await r.publish('news.js', 'two');
    for (let i = 0; i < 200 && got.length < 2; i++) await sleep(10);
    assert.deepStrictEqual(got, [['direct', 'one'], ['news.*', 'news.js', 'two']]);
  })));
  await check('blocking', 'BLPOP and BZPOPMIN wake, BRPOP times out', () => using({}, (r) => using({}, async (o) => {
    setTimeout(() => o.rpush('list', 'a').then(() => o.zadd('zs', 1, 'b')), 50);
    assert.deepStrictEqual(await r.blpop('list', 5), ['list', 'a']);
    assert.deepStrictEqual(await r.bzpopmin('zs', 5), ['zs', 'b', '1']);
    assert.strictEqual(await r.brpop('nothing', 0.05), null);
  })));
  await check('features', 'scanStream, streams, RL.ACQUIRE by call', () => using({ db: 2 }, async (r) => {
    await r.flushdb();
    await r.mset(Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`key:${i}`, i])));
    const seen = new Set();
    for await (const keys of r.scanStream({ match: 'key:*', count: 50 })) keys.forEach((k) => seen.add(k));
    assert.strictEqual(seen.size, 500);
    await r.xadd('x', '1-1', 'f', 'v');
    assert.deepStrictEqual(await r.xread('COUNT', 1, 'STREAMS', 'x', '0'), [['x', [['1-1', ['f', 'v']]]]]);
    assert.strictEqual((await r.call('RL.ACQUIRE', 'api', 1, 'GCRA', 1, 60000))[0], 0);
    assert.strictEqual((await r.call('RL.ACQUIRE', 'api', 1))[0], 1);
  }));
};
