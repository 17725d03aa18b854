// ioredis, which speaks RESP2.
'use strict';
const assert = require('node:assert');
const Redis = require('ioredis');
const { client, sleep, until, tryWays, options } = require('./harness.js');

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
  await tryWays(at, check, (way) => using(options(way), async (r) => assert.strictEqual(await r.set('way', 'v'), 'OK')));
  await check('auth', 'what an ACL user may not do', () => using(options({ port: at.secret, username: 'app', password: 'another' }), (r) => assert.rejects(r.flushall(), /^ReplyError: NOPERM /)));
  await check('pipeline', '1000 commands, and automatic pipelining', () => using({ enableAutoPipelining: true }, async (r) => {
    const p = r.pipeline().del('n');
    for (let i = 0; i < 1000; i++) p.incr('n');
    assert.strictEqual((await p.exec())[1000][1], 1000);
    const all = await Promise.all(Array.from({ length: 100 }, () => r.incr('n')));
    assert.strictEqual(Math.max(...all), 1100);
  }));
  await check('pipeline', '200,000 commands', () => using({}, async (r) => {
    await r.set('many', 'v'.repeat(40));
    const p = r.pipeline();
    for (let i = 0; i < 200000; i++) p.get('many');
    assert.strictEqual((await p.exec())[199999][1], 'v'.repeat(40));
  }));
  await check('pipeline', 'an error among 3, buffers', () => using({}, async (r) => {
    const bytes = Buffer.from([0, 255, 13, 10, 128]);
    const [[, ok], [wrong], [, got]] = await r.pipeline().set('bytes', bytes).incr('bytes').getBuffer('bytes').exec();
    assert.deepStrictEqual([ok, wrong.message, got], ['OK', 'ERR value is not an integer or out of range', bytes]);
  }));
  await check('transaction', 'MULTI without a pipeline, an unknown command aborts it', () => using({}, async (r) => {
    await r.multi({ pipeline: false });
    assert.strictEqual(await r.set('t', 1), 'QUEUED');
    assert.deepStrictEqual(await r.exec(), [[null, 'OK']]);
    await assert.rejects(r.multi().set('t', 2).call('NOSUCH').exec(), /EXECABORT/);
    assert.strictEqual(await r.get('t'), '1');
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
  await check('script', 'scripts in a pipeline after SCRIPT FLUSH', () => using({ scripts: { twice: { lua: 'return ARGV[1] * 2', numberOfKeys: 0 } } }, async (r) => {
    assert.strictEqual(await r.twice(4), 8);
    await r.script('FLUSH');
    assert.deepStrictEqual(await r.pipeline().twice(21).ping().exec(), [[null, 42], [null, 'PONG']]);
  }));
  await check('pubsub', 'sharded channel; keyspace events of keys and fields that expire', () => using({}, (sub) => using({}, async (r) => {
    const got = new Set();
    sub.on('smessage', (c, m) => got.add(`${c}=${m}`));
    sub.on('pmessage', (p, c, m) => got.add(`${c}=${m}`));
    await sub.ssubscribe('shard');
    await sub.psubscribe('__keyevent@0__:*');
    await r.spublish('shard', 'hello');
    await r.set('event', 'v', 'PX', 30);
    await r.hset('events', 'f', 'v', 'g', 'w');
    await r.call('HPEXPIRE', 'events', 30, 'FIELDS', 1, 'f');
    await until('events', () => ['shard=hello', '__keyevent@0__:set=event', '__keyevent@0__:expired=event', '__keyevent@0__:hexpired=events'].every((x) => got.has(x)));
  })));
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
  await check('blocking', 'XREADGROUP, BLMOVE, BZMPOP wake; a client that goes frees its place', () => using({}, (r) => using({}, async (o) => {
    await o.del('bx', 'bl', 'bm', 'bz');
    await o.xgroup('CREATE', 'bx', 'g', '$', 'MKSTREAM');
    setTimeout(() => o.xadd('bx', '5-1', 'f', 'v').then(() => o.rpush('bl', 'a')).then(() => o.zadd('bz', 2, 'm')), 50);
    assert.deepStrictEqual(await r.xreadgroup('GROUP', 'g', 'c', 'BLOCK', 5000, 'STREAMS', 'bx', '>'), [['bx', [['5-1', ['f', 'v']]]]]);
    assert.strictEqual(await r.blmove('bl', 'bm', 'LEFT', 'RIGHT', 5), 'a');
    assert.deepStrictEqual(await r.bzmpop(5, 1, 'bz', 'MIN'), ['bz', [['m', '2']]]);
    await using({}, async (gone) => {
      gone.blpop('bl', 0).catch(() => {});
      await until('blocked client', async () => /blocked_clients:1\r/.test(await o.info('clients')));
    });
    await until('end of the wait', async () => /blocked_clients:0\r/.test(await o.info('clients')));
  })));
  await check('features', 'Cluster: slots, pipelines, scripts, pub/sub, automatic pipelining', async () => {
    const r = new Redis.Cluster([{ host: '127.0.0.1', port: at.cluster }], { enableAutoPipelining: true, shardedSubscribers: true });
    try {
      const all = await Promise.all(Array.from({ length: 200 }, (_, i) => r.set(`c:${i}`, i)));
      assert.strictEqual(all.filter((x) => x === 'OK').length, 200);
      assert.strictEqual(r.nodes('master').length, 1);
      assert.deepStrictEqual(await r.pipeline().incr('{t}n').incrby('{t}n', 2).exec(), [[null, 1], [null, 3]]);
      assert.deepStrictEqual(await r.multi().incr('{t}n').get('{t}n').exec(), [[null, 4], [null, '4']]);
      await assert.rejects(r.mget('a', 'b'), /CROSSSLOT|same slot/);
      r.defineCommand('plus', { numberOfKeys: 1, lua: "return redis.call('INCRBY', KEYS[1], ARGV[1])" });
      assert.strictEqual(await r.plus('{t}n', 6), 10);
      const got = [];
      r.on('message', (c, m) => got.push(m));
      r.on('smessage', (c, m) => got.push(m));
      await r.subscribe('direct');
      await r.ssubscribe('shard');
      await r.publish('direct', 'one');
      await r.spublish('shard', 'two');
      await until('messages', () => got.length === 2);
    } finally { r.disconnect(); }
  });
  await check('features', 'a connection that is cut comes back, with its subscriptions', async () => {
    const r = new Redis({ host: '127.0.0.1', port: at.plain, retryStrategy: () => 20 });
    await using({}, async (o) => {
      const got = [];
      r.on('message', (c, m) => got.push(m));
      await r.subscribe('again');
      await o.client('KILL', 'TYPE', 'pubsub');
      await until('subscription', async () => await o.publish('again', 'back') > 0);
      await until('message', () => got.length > 0);
    });
    r.disconnect();
  });
  await check('features', 'MONITOR', () => using({}, (r) => using({}, async (o) => {
    const seen = [];
    const monitor = await r.monitor();
    monitor.on('monitor', (time, args) => seen.push(args.join(' ')));
    await o.set('monitored', 'yes');
    await until('line', () => seen.includes('set monitored yes'));
    monitor.disconnect();
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
