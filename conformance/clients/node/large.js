// Large arguments, many arguments, huge points and many jobs: what a server does well at ten entries it may do wrong, or
// slowly, at a hundred thousand. LARGE=n makes all of it n times larger.
'use strict';
const assert = require('node:assert');
const crypto = require('node:crypto');
const Redis = require('ioredis');
const redis = require('redis');
const { Queue, Worker } = require('bullmq');
const { RateLimiterRedis } = require('rate-limiter-flexible');
const { client, sleep } = require('./harness.js');

// Seven is the most: 448 MB, where a server takes 512.
const larger = Math.max(1, Math.min(7, Number(process.env.LARGE) || 1));
const valueSize = larger * (64 << 20);
const keySize = larger * (1 << 20);
const entries = larger * 100000;
const jobs = larger * 10000;

// binary is that many bytes of every value, the same in every run.
const binary = (n) => crypto.createCipheriv('aes-128-ctr', Buffer.alloc(16), Buffer.alloc(16)).update(Buffer.alloc(n));

// same compares what is too long to be printed.
function same(got, wanted) {
  const ok = Buffer.isBuffer(wanted) ? Buffer.isBuffer(got) && wanted.equals(got) : Array.isArray(got) && got.length === wanted.length && got.every((g, i) => String(g) === String(wanted[i]));
  assert.ok(ok, `a reply of ${got && got.length} is not that of ${wanted.length}`);
}

const script = `for i, k in ipairs(KEYS) do redis.call('SET', k, ARGV[i]) end
  ARGV[1] = 'first'
  table.remove(ARGV, 1)
  local n = 0
  for i, v in ipairs(ARGV) do n = n + 1 end
  return {#KEYS, #ARGV, n}`;

// checks runs the checks of a client; send sends a command and resolves to its reply, bytes as Buffers if they are wanted.
async function checks(check, send) {
  const names = Array.from({ length: entries }, (_, i) => `name:${String(i).padStart(6, '0')}`);
  const values = names.map((_, i) => `value ${7 * i}`);
  const keys = names.map((_, i) => `key:${i}`);
  await check('large', `a value of ${valueSize >> 20} MB, keys of ${keySize >> 20} MB`, async () => {
    const v = binary(valueSize);
    const k = binary(keySize);
    const k2 = Buffer.concat([k, Buffer.from('2')]);
    assert.strictEqual(String(await send(['SET', 'value', v])), 'OK');
    same(await send(['GET', 'value'], true), v);
    assert.strictEqual(await send(['APPEND', 'value', 'tail']), valueSize + 4);
    same(await send(['GETRANGE', 'value', String(valueSize - 1000), '-1'], true), Buffer.concat([v.subarray(-1000), Buffer.from('tail')]));
    await send(['SET', k, k]);
    await send(['RENAME', k, k2]);
    assert.strictEqual(await send(['EXISTS', k, k2]), 1);
    same(await send(['GET', k2], true), k);
    assert.strictEqual(await send(['DEL', k, k2, 'value']), 2);
  });
  await check('large', `${entries} entries in one command, and read in one`, async () => {
    const n = entries;
    assert.strictEqual(await send(['HSET', 'h', ...names.flatMap((name, i) => [name, values[i]])]), n);
    same(await send(['HMGET', 'h', ...names]), values);
    assert.strictEqual(await send(['SADD', 's', ...names]), n);
    same(await send(['SMISMEMBER', 's', ...names]), names.map(() => 1));
    assert.strictEqual(await send(['ZADD', 'z', ...names.flatMap((name, i) => [String(i), name])]), n);
    same(await send(['ZRANGE', 'z', '0', '-1']), names);
    assert.strictEqual(await send(['RPUSH', 'l', ...values]), n);
    same(await send(['LRANGE', 'l', '0', '-1']), values);
    await send(['MSET', ...keys.flatMap((key, i) => [key, values[i]])]);
    same(await send(['MGET', ...keys]), values);
    assert.strictEqual(await send(['DEL', ...keys]), n);
    assert.strictEqual(await send(['DEL', 'h', 's', 'z', 'l']), 4);
  });
  await check('large', `a script with ${entries} KEYS and as many ARGV`, async () => {
    assert.deepStrictEqual(await send(['EVAL', script, String(entries), ...keys, ...values]), [entries, entries - 1, entries - 1]);
    same(await send(['MGET', ...keys]), values);
    same(await send(['EVAL', 'return ARGV', '0', ...values]), values);
    assert.strictEqual(await send(['DEL', ...keys]), entries);
  });
}

module.exports = async (at) => {
  const io = new Redis({ host: '127.0.0.1', port: at.plain, db: 6 });
  await checks(client('ioredis'), ([name, ...args], bytes) => (bytes ? io.callBuffer(name, args) : io.call(name, args)));
  for (const RESP of [2, 3]) {
    const node = redis.createClient({ RESP, socket: { host: '127.0.0.1', port: at.plain }, database: 7 });
    node.on('error', () => {});
    await node.connect();
    const buffers = { typeMapping: { [redis.RESP_TYPES.BLOB_STRING]: Buffer } };
    const check = client('redis', 'node-redis');
    await checks((area, name, f) => check(area, `${name}, RESP${RESP}`, f), (args, bytes) => node.sendCommand(args, bytes ? buffers : undefined));
    node.destroy();
  }
  await client('rate-limiter-flexible')('large', 'points up to 2^53, a thousand keys at once', async () => {
    const points = Number.MAX_SAFE_INTEGER;
    const limiter = new RateLimiterRedis({ storeClient: io, points, duration: 3600, keyPrefix: 'huge' });
    assert.strictEqual((await limiter.consume('u', points - 2)).remainingPoints, 2);
    assert.strictEqual((await limiter.consume('u', 1)).consumedPoints, points - 1);
    assert.strictEqual((await limiter.consume('u', 1)).remainingPoints, 0);
    await assert.rejects(limiter.consume('u', 1), (r) => r.remainingPoints === 0 && r.msBeforeNext > 3500000);
    const million = new RateLimiterRedis({ storeClient: io, points: 1000000, duration: 3600, keyPrefix: 'million' });
    const all = await Promise.all(Array.from({ length: 1000 }, (_, i) => million.consume(`u${i}`, 999999)));
    assert.ok(all.every((r) => r.remainingPoints === 1));
  });
  await client('bullmq', 'BullMQ')('large', `${jobs} jobs of one addBulk, a quarter of them delayed, each done once`, async () => {
    const connection = { host: '127.0.0.1', port: at.plain, db: 8, maxRetriesPerRequest: null };
    const queue = new Queue('large', { connection });
    const done = new Map();
    await queue.addBulk(Array.from({ length: jobs }, (_, n) => ({ name: 'n', data: { n }, opts: { removeOnComplete: true, ...(n % 4 === 0 && { delay: 500 }) } })));
    const worker = new Worker('large', async (job) => { done.set(job.data.n, (done.get(job.data.n) || 0) + 1); }, { connection, concurrency: 100 });
    worker.on('error', () => {});
    try {
      while (done.size < jobs) await sleep(20);
      assert.ok([...done.values()].every((times) => times === 1));
    } finally { await Promise.all([worker.close(), queue.close()]); }
  });
  io.disconnect();
};
