// An order's time-out and a login's limit, without waiting for them: node:test and node-redis.
'use strict';
const assert = require('node:assert');
const { after, before, beforeEach, test } = require('node:test');
const { createClient } = require('redis');

const client = createClient({ url: process.env.LIMITKV_URL });
const send = (...words) => client.sendCommand(words.map(String));
const advance = (ms) => send('LKV.CLOCK', 'ADVANCE', ms);

before(() => client.connect());
beforeEach(async () => {
  await client.flushAll();
  await send('LKV.CLOCK', 'FREEZE'); // from here on time passes only when a test says so
});
after(() => client.close());

test('an order is over after 15 minutes', async () => {
  await send('DQ.ADD', 'orders', 'DELAY', 900000, 'ID', 'order:7', 'ann');
  await advance(899999);
  assert.equal(await send('DQ.POP', 'orders'), null);
  await advance(1);
  assert.deepEqual((await send('DQ.POP', 'orders'))[0].slice(0, 2), ['order:7', 'ann']);
});

test('the fourth login in a minute is refused', async () => {
  const login = async () => (await send('RL.ACQUIRE', 'login:ann', 1, 'LOG', 3, 60000))[0];
  assert.deepEqual([await login(), await login(), await login(), await login()], [0, 0, 0, 1]);
  await advance(60000);
  assert.equal(await login(), 0);
});
