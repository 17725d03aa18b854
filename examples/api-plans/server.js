// The API: each customer has a plan, and each request takes from all limits of the plan, or from none.
'use strict';
const http = require('node:http');
const { createClient } = require('redis');

const PLANS = {
  free: { minute: 3, month: 1000, exports: 1 },
  pro: { minute: 600, month: 100000, exports: 2 },
};
const CUSTOMERS = { 'key-ann': ['ann', 'free'], 'key-bob': ['bob', 'pro'] };
const EXPORT_LEASE = 60000; // an export that nobody ends is over by then

async function main() {
  const client = await createClient({ url: process.env.LIMITKV_URL || 'redis://127.0.0.1:6379' }).connect();
  const send = (...words) => client.sendCommand(words.map(String));

  // take answers a request that is refused, with the limit that refused it.
  async function take(res, limits, options = []) {
    const keys = limits.flatMap(({ key, cost }) => [key, cost]);
    const rules = limits.flatMap(({ rule }, i) => ['RULE', i + 1, ...rule.split(' ')]);
    const [limited, , remaining, retryMs, , index] = await send('RL.MACQUIRE', limits.length, ...keys, ...options, ...rules);
    if (!limited) return { remaining };
    res.writeHead(429, { 'Retry-After': Math.ceil(retryMs / 1000) });
    res.end(limits[index].name);
    return null;
  }

  const server = http.createServer(async (req, res) => {
    const customer = CUSTOMERS[req.headers['x-api-key']];
    if (!customer) return res.writeHead(401).end();
    const [name, plan] = customer;
    const limit = (kind, rule, cost) => ({ name: kind, key: `plan:${name}:${kind}`, rule, cost });
    const minute = limit('minute', `FIXED ${PLANS[plan].minute} 60000`, 1);
    const exportsAtOnce = limit('exports', `CONC ${PLANS[plan].exports}`, 1);
    const month = (cost) => limit('month', `CAL ${PLANS[plan].month} MONTH TZ Europe/Berlin`, cost);

    if (req.method === 'DELETE') { // an export is done: the next one may begin
      await send('RL.SETTLE', exportsAtOnce.key, req.url);
      return res.writeHead(204).end();
    }
    if (req.url.startsWith('/exports/')) { // one costs a hundred requests of the month, and counts until it is done
      const taken = await take(res, [exportsAtOnce, month(100)], ['ID', req.url, 'LEASE', EXPORT_LEASE]);
      return taken && res.writeHead(202).end('exporting');
    }
    const taken = await take(res, [minute, month(1)]);
    return taken && res.writeHead(200).end(`${taken.remaining} left`);
  });
  server.listen(0, '127.0.0.1', () => process.send(server.address().port));
}

main();
