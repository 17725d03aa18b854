// What the checks of all clients need: servers as users start them, and lines for the runner.
'use strict';
const assert = require('node:assert');
const { spawn, execFileSync } = require('node:child_process');
const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');

const patience = 30000;
const password = 'a secret';
const user = { username: 'app', password: 'another' };
const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'limitkv-node-'));
const servers = [];

// start starts a server and resolves to the port that it prints.
function start(...args) {
  return new Promise((resolve, reject) => {
    const server = spawn(process.env.LIMITKV, [...args, '--save', ''], { stdio: ['ignore', 'pipe', 'inherit'] });
    servers.push(server);
    let text = '';
    server.stdout.on('data', (b) => {
      text += b;
      const m = /listens on 127\.0\.0\.1:(\d+)/.exec(text);
      if (m) resolve(Number(m[1]));
    });
    server.on('exit', () => reject(new Error(`the server said ${text}`)));
  });
}

function freePort() {
  return new Promise((resolve) => {
    const s = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = s.address();
      s.close(() => resolve(port));
    });
  });
}

// startAll starts an open server, one with a password and a user, two with TLS – the second asks for the client's
// certificate – and a cluster of one node.
async function startAll() {
  const socket = path.join(dir, 'sock');
  const cert = path.join(dir, 'cert.pem');
  const key = path.join(dir, 'key.pem');
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-days', '1',
    '-subj', '/CN=limitkv', '-addext', 'subjectAltName=IP:127.0.0.1'], { stdio: 'ignore' });
  const secured = async (authClients) => {
    const port = await freePort();
    await start('--port', '0', '--tls-port', String(port), '--tls-cert-file', cert, '--tls-key-file', key,
      '--tls-ca-cert-file', cert, '--tls-auth-clients', authClients);
    return port;
  };
  const plain = await start('--port', '0', '--unixsocket', socket, '--notify-keyspace-events', 'KEA');
  const secret = await start('--port', '0', '--requirepass', password, '--user', user.username, 'on', `>${user.password}`,
    '~*', '&*', '+@all', '-@dangerous', '+info');
  const cluster = await start('--port', '0', '--cluster-enabled', 'yes');
  const secure = await secured('no');
  const mutual = await secured('yes');
  return { plain, secret, cluster, secure, mutual, socket, ca: fs.readFileSync(cert), key: fs.readFileSync(key) };
}

// ways are the ways to reach a server that every library is tried on: where it is, how to get in, and whether that must
// be refused.
function ways(at) {
  const own = { cert: at.ca, key: at.key };
  return [
    { area: 'connect', name: 'TCP', port: at.plain },
    { area: 'auth', name: 'password', port: at.secret, password },
    { area: 'auth', name: 'ACL user', port: at.secret, ...user },
    { area: 'auth', name: 'a wrong password is refused', port: at.secret, password: 'wrong', refused: true },
    { area: 'tls', name: 'server certificate verified', port: at.secure, tls: { ca: at.ca } },
    { area: 'tls', name: 'a server that is not trusted is refused', port: at.secure, tls: {}, refused: true },
    { area: 'tls', name: 'client certificate', port: at.mutual, tls: { ca: at.ca, ...own } },
    { area: 'tls', name: 'no client certificate is refused', port: at.mutual, tls: { ca: at.ca }, refused: true },
    { area: 'unix', name: 'unix socket', path: at.socket },
  ];
}

// options are ioredis's for a way; it does not try again what was refused.
function options({ port, path: socket, username, password: secret, tls }) {
  const where = socket ? { path: socket } : { host: '127.0.0.1', port };
  return { ...where, username, password: secret, ...(tls && { tls }), retryStrategy: null };
}

// tryWays runs a check for each way; use connects and does something that needs the server.
async function tryWays(at, check, use, protocols = [0]) {
  for (const way of ways(at)) {
    for (const RESP of protocols) {
      const area = way.area === 'connect' && RESP === 3 ? 'resp3' : way.area;
      await check(area, RESP ? `${way.name}, RESP${RESP}` : way.name, () => (way.refused ? assert.rejects(use(way, RESP)) : use(way, RESP)));
    }
  }
}

// until waits for what another does in its own time.
async function until(what, f) {
  for (let i = 0; i < 2000; i++) {
    if (await f()) return;
    await sleep(5);
  }
  assert.fail(`no ${what} in 10 s`);
}

function stopAll() {
  for (const s of servers) s.kill('SIGKILL');
  fs.rmSync(dir, { recursive: true, force: true });
}

// client returns the check function of a library.
function client(name, shown = name) {
  const { version } = JSON.parse(fs.readFileSync(path.join(process.env.NODE_PATH, name, 'package.json')));
  return async (area, check, f) => {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`took longer than ${patience} ms`)), patience);
    });
    try {
      await Promise.race([f(), late]);
      console.log(['pass', shown, version, area, check].join('\t'));
    } catch (e) {
      console.log(['fail', shown, version, area, check, String(e && e.message || e).replace(/\s+/g, ' ')].join('\t'));
    }
    clearTimeout(timer);
  };
}

const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

module.exports = { startAll, stopAll, client, sleep, until, tryWays, options };
