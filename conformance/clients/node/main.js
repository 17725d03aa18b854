// Runs ioredis, node-redis, BullMQ and rate-limiter-flexible against limitkv.
'use strict';
const { startAll, stopAll } = require('./harness.js');

(async () => {
  const at = await startAll();
  const part = process.env.PART;
  const usual = ['./ioredis.js', './noderedis.js', './bullmq.js', './bullmqflows.js', './flexible.js'];
  for (const name of [...(part === 'large' ? [] : usual), ...(part === 'usual' ? [] : ['./large.js'])]) await require(name)(at);
  stopAll();
  process.exit(0);
})().catch((e) => {
  console.error(e);
  stopAll();
  process.exit(1);
});
