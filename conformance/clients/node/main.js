// Runs ioredis, node-redis, BullMQ and rate-limiter-flexible against limitkv.
'use strict';
const { startAll, stopAll } = require('./harness.js');

(async () => {
  const at = await startAll();
  for (const name of ['./ioredis.js', './noderedis.js', './bullmq.js', './bullmqflows.js', './flexible.js']) await require(name)(at);
  stopAll();
  process.exit(0);
})().catch((e) => {
  console.error(e);
  stopAll();
  process.exit(1);
});
