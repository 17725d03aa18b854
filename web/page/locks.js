// Locks: who holds them, and who waits.
import { act, may, one, text } from './server.js';
import { button, element, link, list, number, renew, span, table } from './elements.js';
import { find } from './find.js';

export const locks = (main, words, signal) => find(main, {
  title: 'Locks', view: 'locks', type: 'lock', info: 'LK.INFO',
  order: (a, b) => b.waiters - a.waiters, caption: 'those that most wait for first',
  columns: [
    { title: 'Key', class: 'key', cell: r => link('lock', [r.key], r.key) },
    { title: 'Mode', cell: r => text(r.mode) },
    { title: 'Held by', class: 'key', cell: r => r.holders.slice(0, 3).map(h => text(h[0])).join(', ') + (r.held > 3 ? ' and ' + (r.held - 3) + ' more' : '') },
    { title: 'Waiting', number: true, cell: r => number(r.waiters) },
  ],
}, words, signal);

export async function lock(main, [key], signal) {
  const body = element('div');
  const can = await may({ release: ['LK.RELEASE', key, 'x'] }, signal);
  const look = async () => {
    const r = await one(['LK.INFO', key], signal);
    renew(body, list([
      ['Mode', text(r.mode)], ['Permits taken', number(r.taken) + (r.permits > 0 ? ' of ' + number(r.permits) : '')],
      ...(r.closed > 0 ? [['Closed for', span(r.closed)]] : []), ['Waiting', number(r.waiters)],
    ]), table('Holders: ' + r.held, [
      { title: 'Owner', class: 'key', cell: h => text(h[0]) },
      { title: 'Fence', number: true, cell: h => text(h[1]) },
      { title: 'Lease', number: true, cell: h => h[2] < 0 ? 'as long as its connection' : span(h[2]) },
      { title: 'Permits', number: true, cell: h => number(h[3]) },
      ...(can.release && r.mode !== 'plain' ? [{ title: 'Do', cell: h => button('Take away', () => act(['LK.RELEASE', key, text(h[0])],
        'Take the lock ' + key + ' away from ' + text(h[0]) + '? It may still believe that it holds it.', 'Released').then(look), true) }] : []),
    ], r.holders), table('In line: ' + r.waiters, [
      { title: 'Owner', class: 'key', cell: h => text(h[0]) },
      { title: 'Wants', cell: h => h.slice(1).map(text).join(', ') },
    ], r.line));
  };
  main.append(element('h1', {}, 'Lock ' + key), body, button('Look again', look));
  await look();
}
