// The libraries at work on a server that runs already: LOAD names what is done, SERVER where, COUNT how much of it, WORKERS
// how many do it at once; every name has MARK in it. A line "begin PHASE" and a line "end PHASE OPERATIONS", their parts
// separated by tabs, stand around each phase.
'use strict';
const { Queue, Worker } = require('bullmq');
const Redis = require('ioredis');
const { RateLimiterRedis } = require('rate-limiter-flexible');

const [host, port] = process.env.SERVER.split(':');
const count = Number(process.env.COUNT);
const workers = Number(process.env.WORKERS);
const mark = process.env.MARK;

async function phase(name, operations, f) {
  process.stdout.write(`begin\t${name}\n`);
  await f();
  process.stdout.write(`end\t${name}\t${operations}\n`);
}

// inParallel calls f with the numbers from first to before end, as many at once as there are workers.
async function inParallel(first, end, f) {
  let next = first;
  await Promise.all(Array.from({ length: workers }, async () => {
    while (next < end) await f(next++);
  }));
}

// bullmq adds jobs, half of them one by one and half in bulk, a quarter delayed, and works them off.
async function bullmq() {
  const connection = { host, port: Number(port), maxRetriesPerRequest: null };
  const queue = new Queue(mark, { connection });
  await queue.waitUntilReady();
  const half = count / 2;
  const job = (i) => ({ name: 'job', data: { i, text: 'what is to be done' }, opts: i % 4 === 0 ? { delay: 100 } : {} });
  await phase('add', half, () => inParallel(0, half, (i) => queue.add('job', job(i).data, job(i).opts)));
  await phase('add in bulk', half, async () => {
    for (let i = half; i < count; i += 500) {
      await queue.addBulk(Array.from({ length: Math.min(500, count - i) }, (_, j) => job(i + j)));
    }
  });
  let done = 0;
  await phase('work', count, () => new Promise((resolve, reject) => {
    const worker = new Worker(mark, async (j) => j.data.i, { connection, concurrency: workers });
    worker.on('completed', () => { if (++done === count) worker.close().then(resolve, reject); });
    worker.on('error', reject);
  }));
  await queue.close();
}

// flexible asks a limiter of 5 points for as many users that each is refused at the end.
async function flexible() {
  const storeClient = new Redis({ host, port: Number(port) });
  const limiter = new RateLimiterRedis({ storeClient, keyPrefix: mark, points: 5, duration: 60 });
  await phase('consume', count, () => inParallel(0, count, async (i) => {
    try {
      await limiter.consume(`user${Math.floor(i / 8)}`);
    } catch (refused) {
      if (refused instanceof Error) throw refused;
    }
  }));
  await storeClient.quit();
}

module.exports = (name) => ({ bullmq, 'rate-limiter-flexible': flexible })[name]();
