// node-redis, in RESP2 and RESP3.
'use strict';
const assert = require('node:assert');
const redis = require('redis');
const { client, until, tryWays } = require('./harness.js');

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
  await tryWays(at, check, ({ port, path, username, password, tls }, RESP) => {
    const where = path ? { path } : { host: '127.0.0.1', port, ...(tls && { tls: true, ...tls }) };
    return using({ RESP, username, password, socket: { ...where, reconnectStrategy: false } }, async (r) => assert.strictEqual(await r.set('way', 'v'), 'OK'));
  }, [2, 3]);
  await check('resp3', 'doubles, booleans, nulls and big numbers as they come', () => using({ RESP: 3 }, async (r) => {
    await r.zAdd('zr', { score: 1.5, value: 'm' });
    assert.strictEqual(await r.zScore('zr', 'm'), 1.5);
    assert.strictEqual(await r.get('none'), null);
    assert.deepStrictEqual(await r.eval("redis.setresp(3); return {redis.call('HGETALL', 'nohash').map and 1, false, 3}"), [1, false, 3]);
    assert.deepStrictEqual({ ...await r.sendCommand(['CONFIG', 'GET', 'maxmemory']) }, { maxmemory: '0' });
  }));
  await check('pipeline', '1000 commands', () => using({}, async (r) => {
    await r.del('n');
    const all = await Promise.all(Array.from({ length: 1000 }, () => r.incr('n')));
    assert.strictEqual(all[999], 1000);
  }));
  await check('pipeline', '200,000 commands', () => using({}, async (r) => {
    await r.set('many', 'v'.repeat(40));
    const all = await Promise.all(Array.from({ length: 200000 }, () => r.get('many')));
    assert.strictEqual(all[199999], 'v'.repeat(40));
  }));
  await check('pipeline', 'execAsPipeline, an error among others', () => using({}, async (r) => {
    assert.deepStrictEqual(await r.multi().set('p', '1').incr('p').execAsPipeline(), ['OK', 2]);
    await assert.rejects(r.multi().set('p', 'x').incr('p').get('p').execAsPipeline(), /ERR value is not an integer/);
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
  await check('pubsub', 'in RESP3 a subscribed client runs commands; buffers; leaving', () => using({ RESP: 3 }, (sub) => using({}, async (r) => {
    const got = [];
    await sub.subscribe('raw', (m) => got.push(m), true);
    assert.strictEqual(await sub.ping(), 'PONG');
    await r.publish('raw', Buffer.from([0, 255]));
    await until('message', () => got.length === 1);
    assert.deepStrictEqual(got[0], Buffer.from([0, 255]));
    await sub.unsubscribe('raw');
    assert.strictEqual(await r.publish('raw', 'x'), 0);
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
  await check('blocking', 'a pool: 4 connections block while others work; XREAD, BZPOPMAX', async () => {
    const pool = redis.createClientPool({ socket: { host: '127.0.0.1', port: at.plain } }, { minimum: 6, maximum: 6 });
    await pool.connect();
    try {
      await pool.del(['pool', 'px', 'pz']);
      const waits = [pool.blPop('pool', 5), pool.blPop('pool', 5), pool.xRead([{ key: 'px', id: '$' }], { BLOCK: 5000 }), pool.bzPopMax('pz', 5)];
      await until('4 that wait', async () => /blocked_clients:4\r/.test(await pool.info('clients')));
      await pool.rPush('pool', ['a', 'b']);
      await pool.xAdd('px', '1-1', { f: 'v' });
      await pool.zAdd('pz', { score: 3, value: 'm' });
      const [a, b, x, z] = await Promise.all(waits);
      assert.deepStrictEqual([a.element, b.element].sort(), ['a', 'b']);
      assert.deepStrictEqual({ ...x[0].messages[0].message }, { f: 'v' });
      assert.deepStrictEqual([z.value, z.score], ['m', 3]);
    } finally { pool.destroy(); }
  });
  for (const RESP of [2, 3]) {
    await check('features', `createCluster: slots, multi, scripts, sharded pub/sub, RESP${RESP}`, async () => {
      const scripts = {
        plus: redis.defineScript({
          NUMBER_OF_KEYS: 1, SCRIPT: "return redis.call('INCRBY', KEYS[1], ARGV[1])",
          parseCommand(parser, key, n) { parser.pushKey(key); parser.push(String(n)); }, transformReply: (v) => v,
        }),
      };
      const r = redis.createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${at.cluster}` }], RESP, scripts });
      await r.connect();
      try {
        await Promise.all(Array.from({ length: 200 }, (_, i) => r.set(`n:${i}`, String(i))));
        assert.strictEqual(await r.get('n:199'), '199');
        assert.strictEqual(r.masters.length, 1);
        await r.del('{n}a');
        assert.deepStrictEqual(await r.multi().incr('{n}a').incrBy('{n}a', 2).exec(), [1, 3]);
        assert.strictEqual(await r.plus('{n}a', 4), 7);
        const got = [];
        await r.sSubscribe('shard', (m) => got.push(m));
        await r.subscribe('direct', (m) => got.push(m));
        await r.sPublish('shard', 'one');
        await r.publish('direct', 'two');
        await until('messages', () => got.length === 2);
      } finally { r.destroy(); }
    });
  }
  await check('features', 'client-side caching of a pool', async () => {
    const cache = new redis.BasicPooledClientSideCache({ ttl: 0, maxEntries: 100 });
    const pool = redis.createClientPool({ RESP: 3, socket: { host: '127.0.0.1', port: at.plain } }, { minimum: 2, maximum: 2, clientSideCache: cache });
    await pool.connect();
    try {
      await using({}, (o) => o.set('pooled', 'one'));
      for (let i = 0; i < 8; i++) assert.strictEqual(await pool.get('pooled'), 'one');
      assert.ok(cache.stats().hitCount > 0);
      await using({}, (o) => o.set('pooled', 'two'));
      await until('new value', async () => await pool.get('pooled') === 'two');
    } finally { pool.destroy(); }
  });
  await check('features', 'streams with groups, geo, HyperLogLog, MONITOR, RL.ACQUIRE', () => using({}, async (r) => {
    await r.del(['sg', 'geo', 'pf', 'napi']);
    await r.xGroupCreate('sg', 'g', '0', { MKSTREAM: true });
    const id = await r.xAdd('sg', '*', { f: 'v' });
    const read = await r.xReadGroup('g', 'c', { key: 'sg', id: '>' });
    assert.strictEqual(read[0].messages[0].id, id);
    assert.strictEqual((await r.xAutoClaim('sg', 'g', 'd', 0, '0')).messages[0].id, id);
    assert.strictEqual((await r.xPending('sg', 'g')).pending, 1);
    assert.strictEqual(await r.xAck('sg', 'g', id), 1);
    await r.geoAdd('geo', [{ longitude: 13.361389, latitude: 38.115556, member: 'Palermo' }, { longitude: 15.087269, latitude: 37.502669, member: 'Catania' }]);
    assert.deepStrictEqual(await r.geoSearch('geo', { longitude: 15, latitude: 37 }, { radius: 100, unit: 'km' }), ['Catania']);
    await r.pfAdd('pf', ['a', 'b', 'a']);
    assert.strictEqual(await r.pfCount('pf'), 2);
    const seen = [];
    await using({}, async (m) => {
      await m.monitor((line) => seen.push(String(line)));
      await until('line', async () => { await r.echo('look'); return seen.some((x) => x.includes('"ECHO" "look"')); });
    });
    assert.strictEqual((await r.sendCommand(['RL.ACQUIRE', 'napi', '1', 'GCRA', '1', '60000']))[0], 0);
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
