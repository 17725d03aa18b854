// Checks of the middlewares: apps of the real Express and Fastify, asked by HTTP, with node-redis and ioredis, on a real
// server whose clock stands still and is moved. Each check prints a line: pass, the framework, its version, the check; or
// fail, and the reason as well.
'use strict';
const assert = require('node:assert');
const { spawn } = require('node:child_process');
const fs = require('node:fs');
const net = require('node:net');
const path = require('node:path');
const express = require('express');
const Fastify = require('fastify');
const Redis = require('ioredis');
const { createClient } = require('redis');

const frameworks = {
  express: async (options) => {
    const app = express();
    for (const each of [options].flat()) app.use(require('./express.js')(each));
    app.get('/', (req, res) => res.send('here you are'));
    app.use((error, req, res, next) => res.status(500).send(error.message));
    const server = app.listen(0, '127.0.0.1');
    await new Promise((resolve) => server.on('listening', resolve));
    return { port: server.address().port, close: () => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); }) };
  },
  fastify: async (options) => {
    const app = Fastify({ forceCloseConnections: true });
    for (const each of [options].flat()) await app.register(require('./fastify.js'), each);
    app.get('/', async () => 'here you are');
    await app.listen({ port: 0, host: '127.0.0.1' });
    return { port: app.server.address().port, close: () => app.close() };
  },
};

const clients = {
  'node-redis': async (port) => {
    const client = createClient({ socket: { host: '127.0.0.1', port, reconnectStrategy: 20 } }).on('error', () => {});
    client.connect().catch(() => {});
    await until(() => client.isReady, 1000);
    return { client, close: () => client.destroy() };
  },
  ioredis: async (port) => {
    const client = new Redis({ host: '127.0.0.1', port, retryStrategy: () => 20 }).on('error', () => {});
    await until(() => client.status === 'ready', 1000);
    return { client, close: () => client.disconnect() };
  },
};

const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

async function until(f, ms) {
  for (const end = Date.now() + ms; Date.now() < end && !await f();) await sleep(5);
}

// start starts limitkv with a clock that stands still.
async function start(port = 0) {
  const child = spawn(process.env.LIMITKV, ['--test', '--port', String(port), '--save', ''], { stdio: ['ignore', 'pipe', 'inherit'] });
  const at = await new Promise((resolve, reject) => {
    let said = '';
    child.stdout.on('data', (b) => {
      said += b;
      const listens = /listens on \S+:(\d+)/.exec(said);
      if (listens) resolve(Number(listens[1]));
    });
    child.on('exit', () => reject(new Error('the server ended')));
  });
  const control = new Redis({ port: at, retryStrategy: null }).on('error', () => {});
  await control.call('LKV.CLOCK', 'FREEZE', 1700000000000);
  return {
    port: at,
    advance: (ms) => control.call('LKV.CLOCK', 'ADVANCE', ms),
    // Not by SIGKILL: a client of node-redis 5 that reconnects in the moment in which the kernel takes a killed server's sockets
    // away may take a dead one for ready, and stays with it.
    stop: () => new Promise((resolve) => { control.disconnect(); child.removeAllListeners('exit').on('exit', resolve).kill('SIGTERM'); if (child.exitCode !== null || child.signalCode) resolve(); }),
  };
}

const byUser = (limit) => (req) => ({ key: `api:${req.headers['x-user'] ?? 'ann'}`, ...limit });
const three = byUser({ rule: 'LOG 3 60000' });

let failures = 0;

// check runs f with a server, and with what makes an app on it: f(server, serve); serve(options) gives what asks the app.
async function check(framework, library, name, f) {
  const { version } = JSON.parse(fs.readFileSync(path.join(process.env.NODE_PATH, framework, 'package.json')));
  const ends = [];
  const server = await start();
  ends.push(server.stop);
  const serve = async (options, port = server.port) => {
    const { client, close } = await clients[library](port);
    const app = await frameworks[framework]([options].flat().map((each) => ({ client, timeout: 10000, ...each })));
    ends.unshift(app.close, close);
    return async (user) => {
      const answer = await fetch(`http://127.0.0.1:${app.port}/`, { headers: user ? { 'X-User': user } : {} });
      await answer.text();
      return [answer.status, answer.headers.get('RateLimit'), answer.headers.get('RateLimit-Policy'), answer.headers.get('Retry-After')];
    };
  };
  const line = [framework, version, `${name}, with ${library}`];
  try {
    await f(server, serve);
    console.log(['pass', ...line].join('\t'));
  } catch (error) {
    failures++;
    console.log(['fail', ...line, String(error.stack).replace(/\s+/g, ' ')].join('\t'));
  }
  for (const end of ends) await end();
}

async function statuses(ask, n, user) {
  const all = [];
  for (let i = 0; i < n; i++) all.push((await ask(user))[0]);
  return all;
}

async function main() {
  for (const framework of Object.keys(frameworks)) {
    for (const library of Object.keys(clients)) {
      const policy = '"default";q=3;w=60';
      await check(framework, library, 'RateLimit, RateLimit-Policy and Retry-After, a key for each user', async (server, serve) => {
        const ask = await serve({ limits: three });
        assert.deepEqual(await ask(), [200, '"default";r=2;t=60', policy, null]);
        await server.advance(20000);
        assert.deepEqual(await ask(), [200, '"default";r=1;t=60', policy, null]);
        assert.deepEqual(await ask(), [200, '"default";r=0;t=60', policy, null]);
        assert.deepEqual(await ask(), [429, '"default";r=0;t=60', policy, '40']);
        assert.deepEqual(await ask('bob'), [200, '"default";r=2;t=60', policy, null]);
        await server.advance(39999);
        assert.equal((await ask())[0], 429);
        await server.advance(1);
        assert.equal((await ask())[0], 200);
      });

      await check(framework, library, 'several limits, all or nothing', async (server, serve) => {
        const ask = await serve({
          limits: (req) => [{ policy: 'burst', key: 'u', rule: 'GCRA 2 1000' }, { policy: 'day', key: 'd', rule: 'CAL 3 DAY' }, { policy: 'trial', key: 't', rule: 'TOTAL 9' }],
        });
        const policies = '"burst";q=2;w=1, "day";q=3;w=86400, "trial";q=9';
        const [status, state, policies1] = await ask();
        assert.deepEqual([status, policies1], [200, policies]);
        assert.match(state, /^"burst";r=1;t=1, "day";r=2;t=\d+, "trial";r=8$/);
        assert.deepEqual(await statuses(ask, 2), [200, 429]);
        const refused = await ask();
        assert.match(refused[1], /^"burst";r=0;t=1, "day";r=1;t=\d+, "trial";r=7$/);
        assert.equal(refused[3], '1');
        await server.advance(1000);
        assert.deepEqual(await statuses(ask, 2), [200, 429]);
        assert.ok(Number((await ask())[3]) > 1000);
      });

      await check(framework, library, 'costs, free requests, a rule of the request', async (server, serve) => {
        const ask = await serve({
          limits: async (req) => {
            const user = req.headers['x-user'];
            return user === 'free' ? null : { key: `c:${user}`, rule: user === 'big' ? 'FIXED 100 1000' : 'FIXED 5 1000', cost: Number(user) || 60 };
          },
        });
        assert.deepEqual(await ask('free'), [200, null, null, null]);
        assert.deepEqual([await statuses(ask, 2, '3'), await statuses(ask, 2, 'big')], [[200, 429], [200, 429]]);
        assert.deepEqual(await ask('6'), [429, null, '"default";q=5;w=1', null]); // never
        assert.equal((await ask('-1'))[0], 500);
        assert.equal((await ask('0.5'))[0], 500);
      });

      await check(framework, library, 'two middlewares, one behind the other', async (server, serve) => {
        const ask = await serve([{ limits: three }, { limits: () => ({ policy: 'all', key: 'all', rule: 'FIXED 2 1000' }) }]);
        assert.deepEqual(await ask(), [200, '"default";r=2;t=60, "all";r=1;t=1', '"default";q=3;w=60, "all";q=2;w=1', null]);
        assert.deepEqual(await statuses(ask, 2), [200, 429]);
      });

      await check(framework, library, 'a server that is away: open, closed; and back again', async (server, serve) => {
        const errors = [];
        const open = await serve({ limits: three, onError: (e) => errors.push(e) });
        const closed = await serve({ limits: three, failureMode: 'closed' });
        await server.stop();
        await until(async () => (await closed())[0] === 503, 10000);
        assert.deepEqual(await statuses(open, 5), [200, 200, 200, 200, 200]);
        assert.equal(errors.length, 5);
        assert.deepEqual(await closed(), [503, null, policy, '1']);
        const again = await start(server.port);
        try {
          await until(async () => (await closed())[0] === 200, 10000);
          assert.equal((await closed())[0], 200);
        } finally {
          await again.stop();
        }
      });

      await check(framework, library, 'a server that does not answer: open, closed, in time', async (server, serve) => {
        const silent = net.createServer().listen(0, '127.0.0.1');
        await new Promise((resolve) => silent.on('listening', resolve));
        const sockets = [];
        silent.on('connection', (s) => { s.on('error', () => {}); sockets.push(s); });
        // It speaks until the client is ready, and then says nothing more.
        silent.on('connection', (s) => { const to = net.connect(server.port, '127.0.0.1').on('error', () => {}); s.on('data', (b) => { if (!/RL\.ACQUIRE/.test(b)) to.write(b); }); to.pipe(s); sockets.push(to); });
        const began = Date.now();
        const open = await serve({ limits: three, timeout: 100 }, silent.address().port);
        const closed = await serve({ limits: three, failureMode: 'closed', timeout: 50 }, silent.address().port);
        assert.deepEqual([await statuses(open, 2), await statuses(closed, 2)], [[200, 200], [503, 503]]);
        assert.ok(Date.now() - began < 10000);
        sockets.forEach((s) => s.destroy());
        silent.close();
      });
    }
    await check(framework, 'ioredis', 'what is wrong is said', async (server, serve) => {
      await assert.rejects(serve({}), /client and limits are needed/);
      await assert.rejects(serve({ limits: three, failureMode: 'ajar' }), /open or closed/);
      for (const limit of [{ rule: 'CONC 5' }, { rule: 'FIXED 5' }, { rule: 'FIXED 5 1000 PEEK' }, { rule: 'LOG 1 1000', policy: 'a"b' }, { rule: 'LOG 1 1000', key: undefined }]) {
        assert.equal((await (await serve({ limits: byUser(limit) }))())[0], 500);
      }
    });
  }
}

main().then(() => process.exit(failures > 0 ? 1 : 0), (error) => { console.error(error); process.exit(1); });
