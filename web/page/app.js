// The frame of the page: which view is shown, and how it ends.
import { say } from './server.js';
import { element } from './elements.js';
import { overview } from './overview.js';
import { limiters, limiter } from './limiters.js';
import { queues, queue } from './queues.js';
import { locks, lock } from './locks.js';
import { slow } from './slow.js';
import { console_ } from './console.js';

const views = { overview, limiters, limiter, queues, queue, locks, lock, slow, console: console_ };
const parents = { limiter: 'limiters', queue: 'queues', lock: 'locks' };
const main = document.getElementById('main');
let leave = null; // ends what the view that is shown has begun

async function show() {
  const [name, ...words] = location.hash.replace(/^#\/?/, '').split('/');
  const view = views[name] ? name : 'overview';
  leave?.abort();
  leave = new AbortController();
  for (const a of document.querySelectorAll('nav a')) {
    if (a.getAttribute('href') === '#/' + (parents[view] ?? view)) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  }
  say('');
  main.replaceChildren();
  try {
    await views[view](main, words.map(decodeURIComponent), leave.signal);
  } catch (e) {
    if (e.name !== 'AbortError') main.append(element('p', { class: 'bad' }, e.message));
  }
  document.title = (main.querySelector('h1')?.textContent ?? view) + ' – limitkv';
}

let shown = '';
addEventListener('hashchange', () => {
  if (location.hash === '#main') return; // the link to the content
  shown = location.hash;
  show().then(() => shown === location.hash && main.focus({ preventScroll: true }));
});
document.getElementById('db').addEventListener('change', show);
show();
