// BullMQ: jobs now, delayed, in order of priority, retried, limited by rate, and flows.
'use strict';
const assert = require('node:assert');
const { Queue, Worker, QueueEvents, FlowProducer } = require('bullmq');
const { client, until } = require('./harness.js');

module.exports = async (at) => {
  const check = client('bullmq', 'BullMQ');
  const connection = { host: '127.0.0.1', port: at.plain, db: 4, maxRetriesPerRequest: null };
  const open = [];
  const queue = (name) => { const q = new Queue(name, { connection }); open.push(q); return q; };
  const work = (name, f, options) => { const w = new Worker(name, f, { connection, ...options }); w.on('error', () => {}); open.push(w); return w; };
  await check('script', 'jobs are done, with results and events', async () => {
    const q = queue('plain');
    const events = new QueueEvents('plain', { connection });
    open.push(events);
    await events.waitUntilReady();
    work('plain', async (job) => job.data.n * 2);
    const job = await q.add('double', { n: 21 });
    assert.strictEqual(await job.waitUntilFinished(events, 10000), 42);
    assert.strictEqual((await q.getJobCounts('completed')).completed, 1);
  });
  await check('blocking', 'delayed jobs run on time', async () => {
    const q = queue('delayed');
    const late = [];
    work('delayed', async (job) => { late.push(Date.now() - job.data.due); });
    for (const delay of [300, 100, 200]) await q.add('d', { due: Date.now() + delay }, { delay });
    await until('delayed job', () => late.length === 3);
    assert.ok(Math.min(...late) >= -1 && Math.max(...late) < 500, `late by ${late}`);
  });
  await check('features', 'retries with backoff', async () => {
    const q = queue('retry');
    let tries = 0;
    work('retry', async () => { if (++tries < 3) throw new Error('again'); });
    const job = await q.add('r', {}, { attempts: 3, backoff: { type: 'fixed', delay: 50 } });
    await until('success', () => job.isCompleted());
    assert.strictEqual(tries, 3);
  });
  await check('features', 'priorities', async () => {
    const q = queue('priority');
    const order = [];
    for (const priority of [3, 1, 2]) await q.add('p', { priority }, { priority });
    work('priority', async (job) => { order.push(job.data.priority); });
    await until('all jobs', () => order.length === 3);
    assert.deepStrictEqual(order, [1, 2, 3]);
  });
  await check('features', 'rate limiter of a worker', async () => {
    const q = queue('limited');
    const times = [];
    await q.addBulk(Array.from({ length: 6 }, (_, i) => ({ name: 'l', data: { i } })));
    work('limited', async () => { times.push(Date.now()); }, { limiter: { max: 2, duration: 300 } });
    await until('all jobs', () => times.length === 6);
    assert.ok(times[5] - times[0] >= 550, `6 jobs in ${times[5] - times[0]} ms`);
  });
  await check('features', 'flows: a parent waits for its children', async () => {
    const flow = new FlowProducer({ connection });
    open.push(flow);
    const order = [];
    work('flow', async (job) => { order.push(job.name); return job.name; });
    await flow.add({ name: 'parent', queueName: 'flow', children: [{ name: 'one', queueName: 'flow' }, { name: 'two', queueName: 'flow' }] });
    await until('parent', () => order.length === 3);
    assert.strictEqual(order[2], 'parent');
  });
  await check('features', 'job schedulers repeat', async () => {
    const q = queue('repeat');
    let n = 0;
    work('repeat', async () => { n++; });
    await q.upsertJobScheduler('every', { every: 100 });
    await until('repeated job', () => n >= 3);
    assert.ok(await q.removeJobScheduler('every'));
  });
  await Promise.all(open.map((x) => x.close().catch(() => {})));
};
