// Runs ioredis, node-redis, BullMQ and rate-limiter-flexible against limitkv; with LOAD, see load.js, with SENTINELS, sentinels.js.
'use strict';
const { startAll, stopAll } = require('./harness.js');

(async () => {
  if (process.env.LOAD) {
    await require('./load.js')(process.env.LOAD);
    process.exit(0);
  }
  if (process.env.SENTINELS) await require('./sentinels.js')(process.env.SENTINELS);
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
