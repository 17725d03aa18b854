// What the checks of all clients need: servers as users start them, and lines for the runner.
'use strict';
const { spawn, execFileSync } = require('node:child_process');
const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');

const patience = 30000;
const password = 'a secret';
const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'limitkv-node-'));
const servers = [];

// start starts a server and resolves to the port that it prints.
function start(...args) {
  return new Promise((resolve, reject) => {
    const server = spawn(process.env.LIMITKV, args, { stdio: ['ignore', 'pipe', 'inherit'] });
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

// startAll starts an open server, one with a password and one with TLS.
async function startAll() {
  const socket = path.join(dir, 'sock');
  const cert = path.join(dir, 'cert.pem');
  const key = path.join(dir, 'key.pem');
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-days', '1',
    '-subj', '/CN=limitkv', '-addext', 'subjectAltName=IP:127.0.0.1'], { stdio: 'ignore' });
  const plain = await start('--port', '0', '--unixsocket', socket);
  const secret = await start('--port', '0', '--requirepass', password);
  const secure = await freePort();
  await start('--port', '0', '--tls-port', String(secure), '--tls-cert-file', cert, '--tls-key-file', key,
    '--tls-ca-cert-file', cert, '--tls-auth-clients', 'no');
  return { plain, secret, secure, socket, ca: fs.readFileSync(cert) };
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

module.exports = { startAll, stopAll, client, sleep, password };
