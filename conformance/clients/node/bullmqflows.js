// BullMQ beyond a job and its worker: schedulers, flows, deduplication, limits of a queue, jobs whose worker is lost.
'use strict';
const assert = require('node:assert');
const Redis = require('ioredis');
const { Queue, Worker, QueueEvents, FlowProducer, DelayedError } = require('bullmq');
const { client, sleep, until, tryWays, options } = require('./harness.js');

module.exports = async (at) => {
  const check = client('bullmq', 'BullMQ');
  const connection = { host: '127.0.0.1', port: at.plain, db: 14, maxRetriesPerRequest: null };
  const open = [];
  const opened = (x) => { x.on('error', () => {}); open.push(x); return x; };
  const queue = (name) => opened(new Queue(name, { connection }));
  const work = (name, f, more) => opened(new Worker(name, f, { connection, drainDelay: 1, ...more }));

  await tryWays(at, check, async (way) => {
    // A queue tries for ever, so what must be refused is asked of the connection that it is given.
    const r = new Redis({ ...options(way), maxRetriesPerRequest: null });
    r.on('error', () => {});
    try {
      await r.ping();
      const q = new Queue('way', { connection: r });
      const job = await q.add('j', { x: 1 });
      assert.strictEqual((await q.getJob(job.id)).data.x, 1);
      await q.close();
    } finally { r.disconnect(); }
  });
  await check('script', 'a server that has lost the scripts', async () => {
    const q = queue('lost');
    work('lost', async (job) => job.data.n + 1);
    const r = new Redis(connection);
    for (let i = 0; i < 5; i++) {
      await r.script('FLUSH');
      const job = await q.add('j', { n: i });
      await until('result', async () => (await q.getJob(job.id)).returnvalue === i + 1);
    }
    r.disconnect();
  });
  await check('pipeline', '500 jobs by addBulk, 20 at a time, in order of their ids', async () => {
    const q = queue('bulk');
    const jobs = await q.addBulk(Array.from({ length: 500 }, (_, i) => ({ name: 'b', data: { i } })));
    assert.strictEqual(jobs.length, 500);
    const done = [];
    work('bulk', async (job) => { done.push(job.data.i); }, { concurrency: 20 });
    await until('500 jobs', () => done.length === 500);
    await until('500 completed', async () => (await q.getJobCounts('completed')).completed === 500);
    assert.deepStrictEqual([...done].sort((x, y) => x - y), Array.from({ length: 500 }, (_, i) => i));
    await q.obliterate();
    assert.strictEqual(await q.count(), 0);
  });
  await check('pubsub', 'events: waiting, active, progress, completed, failed, deduplicated', async () => {
    const q = queue('events');
    const events = opened(new QueueEvents('events', { connection, lastEventId: '0' }));
    const seen = [];
    for (const name of ['waiting', 'active', 'progress', 'completed', 'failed', 'deduplicated']) events.on(name, () => seen.push(name));
    await events.waitUntilReady();
    const job = await q.add('e', {}, { deduplication: { id: 'once' } });
    const same = await q.add('e', {}, { deduplication: { id: 'once' } });
    assert.strictEqual(same.id, job.id);
    work('events', async (j) => { await j.updateProgress(50); if (j.name === 'f') throw new Error('on purpose'); return 1; });
    await until('completed', () => seen.includes('completed'));
    await q.add('f', {});
    await until('failed', () => seen.includes('failed'));
    assert.deepStrictEqual([...new Set(seen)].sort(), ['active', 'completed', 'deduplicated', 'failed', 'progress', 'waiting']);
  });
  await check('features', 'deduplication for a time, and removed', async () => {
    const q = queue('dedup');
    const a = await q.add('d', { n: 1 }, { deduplication: { id: 'x', ttl: 200 } });
    assert.strictEqual((await q.add('d', { n: 2 }, { deduplication: { id: 'x', ttl: 200 } })).id, a.id);
    await sleep(250);
    const b = await q.add('d', { n: 3 }, { deduplication: { id: 'x', ttl: 60000 } });
    assert.notStrictEqual(b.id, a.id);
    assert.strictEqual(await q.removeDeduplicationKey('x'), 1);
  });
  await check('features', 'pause and resume, last in first out, global concurrency', async () => {
    const q = queue('pause');
    await q.setGlobalConcurrency(1);
    await q.pause();
    for (const n of [1, 2, 3]) await q.add('p', { n }, { lifo: true });
    const order = [];
    let inside = 0;
    let most = 0;
    work('pause', async (job) => { most = Math.max(most, ++inside); await sleep(20); inside--; order.push(job.data.n); }, { concurrency: 5 });
    await sleep(100);
    assert.strictEqual(order.length, 0);
    await q.resume();
    await until('3 jobs', () => order.length === 3);
    assert.deepStrictEqual([order, most], [[3, 2, 1], 1]);
  });
  await check('features', 'exponential backoff, a worker that limits itself, a job put off by its worker', async () => {
    const q = queue('backoff');
    const times = [];
    work('backoff', async () => { times.push(Date.now()); throw new Error('again'); });
    const job = await q.add('b', {}, { attempts: 3, backoff: { type: 'exponential', delay: 50 } });
    await until('failure', () => job.isFailed());
    assert.ok(times[2] - times[0] >= 145, `3 tries in ${times[2] - times[0]} ms`);
    const limited = queue('itself');
    const seen = [];
    const worker = work('itself', async (j) => {
      seen.push([j.id, Date.now()]);
      if (seen.length === 1) {
        await worker.rateLimit(300);
        throw Worker.RateLimitError();
      }
    }, { limiter: { max: 100, duration: 1000 } });
    await limited.add('l', {});
    await until('second try', () => seen.length === 2);
    assert.ok(seen[1][1] - seen[0][1] >= 290, `again after ${seen[1][1] - seen[0][1]} ms`);
    const later = queue('later');
    const tries = [];
    work('later', async (j, token) => {
      tries.push(Date.now());
      if (tries.length === 1) {
        await j.moveToDelayed(Date.now() + 200, token);
        throw new DelayedError();
      }
    });
    await later.add('l', {});
    await until('delayed try', () => tries.length === 2);
    assert.ok(tries[1] - tries[0] >= 195, `again after ${tries[1] - tries[0]} ms`);
  });
  await check('features', 'schedulers: by cron, with a limit, changed, listed', async () => {
    const q = queue('cron');
    let n = 0;
    work('cron', async () => { n++; });
    await q.upsertJobScheduler('second', { pattern: '* * * * * *', limit: 2 }, { name: 'tick', data: { a: 1 } });
    await q.upsertJobScheduler('never', { every: 3600000, startDate: new Date(Date.now() + 3600000) });
    await q.upsertJobScheduler('never', { every: 7200000, startDate: new Date(Date.now() + 3600000) });
    assert.deepStrictEqual((await q.getJobSchedulers()).map((x) => `${x.key} ${x.every ?? x.pattern}`).sort(), ['never 7200000', 'second * * * * * *']);
    await until('2 ticks', () => n >= 2);
    await sleep(1200);
    assert.strictEqual(n, 2);
    assert.ok(await q.removeJobScheduler('never'));
  });
  await check('features', 'flows: 3 levels, the children\'s values, a child that fails its parent', async () => {
    const flow = opened(new FlowProducer({ connection }));
    const sums = [];
    work('tree', async (job) => {
      if (job.data.bad) throw new Error('on purpose');
      const children = await job.getChildrenValues();
      const sum = Object.values(children).reduce((a, b) => a + b, job.data.n);
      if (job.name === 'root') sums.push(sum);
      return sum;
    }, { concurrency: 3 });
    const leaf = (n, more) => ({ name: 'leaf', queueName: 'tree', data: { n }, ...more });
    const tree = await flow.add({ name: 'root', queueName: 'tree', data: { n: 1 }, children: [{ name: 'mid', queueName: 'tree', data: { n: 10 }, children: [leaf(100), leaf(1000)] }, leaf(10000)] });
    await until('root', () => sums.length === 1);
    assert.strictEqual(sums[0], 11111);
    assert.strictEqual((await flow.getFlow({ id: tree.job.id, queueName: 'tree' })).children.length, 2);
    const bad = await flow.add({ name: 'parent', queueName: 'tree', data: { n: 1 }, children: [{ name: 'leaf', queueName: 'tree', data: { bad: true }, opts: { failParentOnFailure: true } }] });
    await until('failed parent', () => bad.job.isFailed());
  });
  await check('features', 'a job whose worker is lost is given to another', async () => {
    const q = queue('stalled');
    const lost = work('stalled', () => new Promise(() => {}), { lockDuration: 300, lockRenewTime: 100000, stalledInterval: 100000, skipStalledCheck: true });
    await q.add('s', {});
    await until('active job', async () => await q.getActiveCount() === 1);
    await lost.close(true);
    let done = 0;
    work('stalled', async () => { done++; }, { stalledInterval: 200 });
    await until('job done by another', () => done === 1);
  });
  await check('features', 'priorities that change, jobs kept by number, metrics, cluster', async () => {
    const q = queue('change');
    const jobs = [];
    for (const n of [1, 2, 3]) jobs.push(await q.add('c', { n }, { priority: n }));
    await jobs[2].changePriority({ priority: 1, lifo: true });
    const order = [];
    work('change', async (job) => { order.push(job.data.n); }, { removeOnComplete: { count: 1 }, metrics: { maxDataPoints: 10 } });
    await until('3 jobs', () => order.length === 3);
    assert.deepStrictEqual(order, [3, 1, 2]);
    await until('1 kept', async () => (await q.getJobCounts('completed')).completed === 1);
    assert.strictEqual((await q.getMetrics('completed')).meta.count, 3);
    const nodes = new Redis.Cluster([{ host: '127.0.0.1', port: at.cluster }], { redisOptions: { maxRetriesPerRequest: null } });
    const clustered = opened(new Queue('nodes', { connection: nodes, prefix: '{bull}' }));
    const results = [];
    opened(new Worker('nodes', async (job) => { results.push(job.data.n); }, { connection: nodes, prefix: '{bull}', drainDelay: 1 }));
    await clustered.add('n', { n: 7 });
    await until('job of the cluster', () => results[0] === 7);
    nodes.options.clusterRetryStrategy = null;
  });
  await Promise.race([Promise.all(open.map((x) => x.close(true).catch(() => {}))), sleep(3000)]);
};
