// What the server does now: numbers, and their last minutes.
import { info, say } from './server.js';
import { bytes, element, graph, number, span } from './elements.js';

const samples = 120;
const everyMillis = 2000;

const rates = [
  ['Commands a second', 'total_commands_processed'],
  ['Grants a second', 'limiter_calls_granted'],
  ['Refusals a second', 'limiter_calls_refused'],
  ['Deliveries a second', 'delay_queue_entries_delivered'],
  ['Locks taken a second', 'lock_calls_granted'],
];

const levels = [
  ['Lateness of deliveries, p99, ms', f => f.delay_queue_lateness_p99_usec / 1000],
  ['Entries that are due', f => Number(f.delay_queue_entries_waiting)],
];

const now = [
  ['Clients', f => number(f.connected_clients) + (f.blocked_clients > 0 ? ', ' + number(f.blocked_clients) + ' wait' : '')],
  ['Memory', f => bytes(f.used_memory) + (f.maxmemory > 0 ? ' of ' + bytes(f.maxmemory) : '')],
  ['Keys', f => number(Object.entries(f).filter(([k]) => /^db\d+$/.test(k)).reduce((n, [, v]) => n + Number(/keys=(\d+)/.exec(v)?.[1] ?? 0), 0))],
  ['Limiters', f => number(f.limiters) + (f.limiter_waiters > 0 ? ', ' + number(f.limiter_waiters) + ' wait' : '')],
  ['Queue entries', f => number(f.delay_queue_entries_waiting) + ' and ' + number(f.delay_queue_entries_leased) + ' leased'],
  ['Locks held', f => number(f.locks) + (f.lock_waiters > 0 ? ', ' + number(f.lock_waiters) + ' wait' : '')],
  ['Disk', f => f.aof_enabled === '1' ? (f.aof_last_write_status === 'ok' ? 'log, ' + bytes(f.aof_current_size) : 'the log cannot be written') :
    f.rdb_last_bgsave_status === 'ok' ? 'snapshots' : 'the last snapshot failed'],
  ['Role', f => f.role === 'slave' ? 'replica, link ' + f.master_link_status : 'primary, ' + f.connected_slaves + ' replicas'],
  ['Up', f => span(f.uptime_in_seconds * 1000)],
];

export async function overview(main, words, signal) {
  const values = new Map();
  const graphs = new Map();
  const cards = element('ul', { class: 'cards' });
  for (const [label] of [...rates, ...levels]) {
    const g = graph(label), b = element('b', {}, '–');
    graphs.set(label, { g, b, points: [] });
    cards.append(element('li', {}, element('small', {}, label), b, g.svg));
  }
  for (const [label] of now) {
    const b = element('b', {}, '–');
    values.set(label, b);
    cards.append(element('li', {}, element('small', {}, label), b));
  }
  const title = element('h1', {}, 'Overview');
  main.append(title, cards);
  let last = null, lastAt = 0;
  const look = async () => {
    const f = await info(['server', 'clients', 'memory', 'persistence', 'stats', 'replication', 'keyspace', 'limitkv'], signal);
    const at = performance.now();
    title.textContent = 'limitkv ' + f.limitkv_version + ', port ' + f.tcp_port;
    for (const [label, show] of now) values.get(label).textContent = show(f);
    const draw = (label, value) => {
      const x = graphs.get(label);
      x.b.textContent = number(value);
      x.points.push(value);
      if (x.points.length > samples) x.points.shift();
      x.g.draw(x.points);
    };
    for (const [label, level] of levels) draw(label, level(f));
    if (last) for (const [label, name] of rates) draw(label, Math.max(0, (f[name] - last[name]) / (at - lastAt) * 1000));
    [last, lastAt] = [f, at];
  };
  await look();
  (async () => {
    let failed = false;
    while (!signal.aborted) {
      await new Promise(done => setTimeout(done, everyMillis));
      if (document.hidden || signal.aborted) continue;
      try {
        await look();
        if (failed) say('');
        failed = false;
      } catch (e) {
        if (signal.aborted) return;
        failed = true;
        say('The server does not answer: ' + e.message);
      }
    }
  })();
}
