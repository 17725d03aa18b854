// node-redis, in RESP2 and RESP3.
'use strict';
const assert = require('node:assert');
const redis = require('redis');
const { client, password } = require('./harness.js');

module.exports = async (at) => {
  const check = client('redis', 'node-redis');
  const using = async (options, f) => {
    const r = redis.createClient({ socket: { host: '127.0.0.1', port: at.plain, reconnectStrategy: false }, ...options });
    r.on('error', () => {});
    await r.connect();
    try { return await f(r); } finally { r.destroy(); }
  };
  for (const [area, RESP] of [['connect', 2], ['resp3', 3]]) {
    await check(area, `RESP${RESP}: set, get, hash, sorted set`, () => using({ RESP }, async (r) => {
      await r.set('k', 'v', { EX: 60 });
      await r.del(['h', 'z']);
      await r.hSet('h', { a: 1, b: 'two' });
      await r.zAdd('z', [{ score: 1.5, value: 'm' }, { score: 2, value: 'n' }]);
      assert.strictEqual(await r.get('k'), 'v');
      assert.deepStrictEqual({ ...await r.hGetAll('h') }, { a: '1', b: 'two' });
      assert.deepStrictEqual((await r.zRangeWithScores('z', 0, -1)).map((x) => [x.value, x.score]), [['m', 1.5], ['n', 2]]);
    }));
  }
  await check('auth', 'password, and refusal of a wrong one', async () => {
    const socket = { host: '127.0.0.1', port: at.secret, reconnectStrategy: false };
    await using({ socket, password }, async (r) => assert.strictEqual(await r.ping(), 'PONG'));
    await assert.rejects(using({ socket, password: 'wrong' }, (r) => r.ping()));
  });
  await check('tls', 'server certificate verified', () => using({ socket: { host: '127.0.0.1', port: at.secure, tls: true, ca: at.ca } }, async (r) => assert.strictEqual(await r.ping(), 'PONG')));
  await check('unix', 'unix socket', () => using({ socket: { path: at.socket, tls: false } }, async (r) => assert.strictEqual(await r.ping(), 'PONG')));
  await check('pipeline', '1000 commands', () => using({}, async (r) => {
    await r.del('n');
    const all = await Promise.all(Array.from({ length: 1000 }, () => r.incr('n')));
    assert.strictEqual(all[999], 1000);
  }));
  await check('transaction', 'MULTI, and a watched key that changes', () => using({}, async (r) => {
    assert.deepStrictEqual(await r.multi().set('t', '1').incr('t').exec(), ['OK', 2]);
    await r.watch('t');
    await using({}, (o) => o.set('t', '5'));
    await assert.rejects(r.multi().incr('t').exec(), redis.WatchError);
  }));
  await check('script', 'defineScript: EVALSHA, NOSCRIPT, EVAL', async () => {
    const scripts = {
      add: redis.defineScript({
        NUMBER_OF_KEYS: 1, SCRIPT: "return redis.call('INCRBY', KEYS[1], ARGV[1])",
        parseCommand(parser, key, n) { parser.pushKey(key); parser.push(String(n)); }, transformReply: (v) => v,
      }),
    };
    await using({ scripts }, async (r) => {
      await r.scriptFlush();
      await r.del('s');
      assert.strictEqual(await r.add('s', 5), 5);
      assert.strictEqual(await r.add('s', 5), 10);
    });
  });
  await check('pubsub', 'channel, pattern and sharded channel', () => using({}, (sub) => using({}, async (r) => {
    const got = [];
    let done;
    const all = new Promise((resolve) => { done = resolve; });
    const told = (m, c) => { got.push(`${c}:${m}`); if (got.length === 3) done(); };
    await sub.subscribe('direct', told);
    await sub.pSubscribe('news.*', told);
    await sub.sSubscribe('shard', told);
    await r.publish('direct', 'one');
    await r.publish('news.js', 'two');
    await r.sPublish('shard', 'three');
    await all;
    assert.deepStrictEqual(got, ['direct:one', 'news.js:two', 'shard:three']);
  })));
  await check('blocking', 'BLPOP wakes, BLMOVE times out', () => using({}, (r) => using({}, async (o) => {
    setTimeout(() => o.rPush('list', 'a'), 50);
    assert.deepStrictEqual({ ...await r.blPop('list', 5) }, { key: 'list', element: 'a' });
    assert.strictEqual(await r.blMove('nothing', 'list', 'LEFT', 'LEFT', 0.05), null);
  })));
  await check('features', 'client-side caching is invalidated', () => using({ RESP: 3, clientSideCache: { ttl: 0, maxEntries: 100 } }, async (r) => {
    await using({}, (o) => o.set('cached', 'one'));
    assert.strictEqual(await r.get('cached'), 'one');
    assert.strictEqual(await r.get('cached'), 'one');
    await using({}, (o) => o.set('cached', 'two'));
    for (let i = 0; i < 200; i++) {
      if (await r.get('cached') === 'two') return;
      await new Promise((resolve) => { setTimeout(resolve, 5); });
    }
    assert.fail('the cache keeps the old value');
  }));
  await check('features', 'functions, scan, hash field expiry', () => using({}, async (r) => {
    await r.functionLoad("#!lua name=limitkvlib\nredis.register_function('twice', function(keys, args) return args[1] * 2 end)", { REPLACE: true });
    assert.strictEqual(await r.fCall('twice', { keys: [], arguments: ['21'] }), 42);
    await r.hSet('hx', { a: 1, b: 2 });
    assert.deepStrictEqual(await r.hExpire('hx', ['a', 'none'], 100), [1, -2]);
    let n = 0;
    for await (const keys of r.scanIterator({ MATCH: 'h*' })) n += keys.length;
    assert.ok(n >= 2);
  }));
};
