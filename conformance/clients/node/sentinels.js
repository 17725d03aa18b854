// ioredis and BullMQ through failovers of Sentinel, for conformance/failover, which says what the lines mean. ioredis appends
// numbers to a list, adds jobs, and takes a lock in turn with another connection, while others wait for the jobs, a limiter and
// the lock. BullMQ adds jobs and works on them.
'use strict';
const Redis = require('ioredis');
const { Queue, Worker } = require('bullmq');

const between = 50;
const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
const say = (...parts) => process.stdout.write(parts.map((p) => String(p).replace(/\s+/g, ' ')).join('\t') + '\n');
let over = false;

module.exports = async (addresses) => {
  const sentinels = addresses.split(',').map((a) => ({ host: a.split(':')[0], port: Number(a.split(':')[1]) }));
  const options = { sentinels, name: 'it', sentinelRetryStrategy: () => 100, retryStrategy: () => 100 };
  const name = 'ioredis';
  const connect = (more) => {
    const c = new Redis({ ...options, ...more });
    c.on('error', (e) => say('error', name, 'connection', e.message));
    return c;
  };
  const attempt = async (what, c, ...args) => {
    try {
      return await c.call(...args);
    } catch (e) {
      say('error', name, what, e.message);
      await sleep(between);
      return null;
    }
  };
  const forever = async (f) => {
    while (!over) {
      await f();
      await sleep(between / 2);
    }
  };
  // A connection for each that waits, since a reply that is late holds up those behind it.
  const plain = connect({ commandTimeout: 3000, maxRetriesPerRequest: 2 });
  const waiting = () => connect({ maxRetriesPerRequest: null });
  let n = 0;
  forever(async () => {
    n++;
    const number = n;
    if (await attempt('RPUSH', plain, 'RPUSH', `ledger:${name}`, number)) say('told', name, number);
    await attempt('DQ.ADD', plain, 'DQ.ADD', `queue:${name}`, 'DELAY', 20, number);
  });
  for (const who of ['holds', 'waits']) {
    const c = waiting();
    forever(async () => {
      const reply = await attempt('LK.ACQUIRE', c, 'LK.ACQUIRE', `lock:${name}`, who, 2000, 'BLOCK', 30000);
      if (!reply || reply[0] !== 1) return;
      say('fence', name, who, reply[1]);
      await sleep(between / 2);
      await attempt('LK.RELEASE', c, 'LK.RELEASE', `lock:${name}`, who);
    });
  }
  const pops = waiting();
  forever(async () => {
    const jobs = await attempt('DQ.POP', pops, 'DQ.POP', `queue:${name}`, 'BLOCK', 30000);
    if (jobs && jobs.length) say('got', name, 'DQ.POP');
  });
  const limits = waiting();
  forever(async () => {
    const reply = await attempt('RL.ACQUIRE', limits, 'RL.ACQUIRE', `limiter:${name}`, 1, 'BLOCK', 30000, 'GCRA', 5, 1000);
    if (reply && reply[0] === 0) say('got', name, 'RL.ACQUIRE');
  });

  const connection = { ...options, maxRetriesPerRequest: null };
  const worker = new Worker('through', async (job) => { say('done', 'BullMQ', job.data.n); },
    { connection, lockDuration: 3000, stalledInterval: 2000, maxStalledCount: 10 });
  worker.on('error', (e) => say('error', 'BullMQ', 'worker', e.message));
  const queue = new Queue('through', { connection: { ...options, commandTimeout: 3000, maxRetriesPerRequest: 2 } });
  queue.on('error', (e) => say('error', 'BullMQ', 'queue', e.message));
  let job = 0;
  forever(async () => {
    job++;
    const number = job;
    try {
      await queue.add('job', { n: number });
      say('added', 'BullMQ', number);
    } catch (e) {
      say('error', 'BullMQ', 'add', e.message);
    }
  });
  process.stdin.resume();
  await new Promise((resolve) => { process.stdin.on('end', resolve); });
  over = true;
  await new Promise(() => {}); // the worker goes on until the program is killed
};
