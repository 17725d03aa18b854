// Two customers of the API: starts it as a process of its own, and shows what it answers them.
'use strict';
const { fork } = require('node:child_process');

async function main() {
  const api = fork(`${__dirname}/server.js`);
  const port = await new Promise((resolve) => api.once('message', resolve));

  async function ask(who, method, path) {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers: { 'X-Api-Key': `key-${who}` } });
    const body = await answer.text();
    const wait = answer.headers.has('Retry-After') ? ', and says when to come back' : '';
    console.log(`${who} ${method} ${path}: ${answer.status}${body && ` (${body})`}${wait}`);
  }

  for (let i = 0; i < 4; i++) await ask('ann', 'GET', '/weather');
  await ask('bob', 'GET', '/weather');
  for (let i = 1; i <= 3; i++) await ask('bob', 'POST', `/exports/${i}`);
  await ask('bob', 'POST', '/exports/2');
  await ask('bob', 'DELETE', '/exports/1');
  await ask('bob', 'POST', '/exports/3');
  await ask('ann', 'POST', '/exports/4');
  await ask('eve', 'GET', '/weather');
  api.kill();
}

main();
