// Limiters: which there are, what is left of them, and what they refuse.
import { act, may, one, text } from './server.js';
import { button, element, field, link, list, number, renew, span } from './elements.js';
import { find } from './find.js';
import { trial } from './trial.js';

export const limiters = (main, words, signal) => find(main, {
  title: 'Limiters', view: 'limiters', type: 'ratelimit', info: 'RL.INFO',
  order: (a, b) => b.refused - a.refused || b.waiters - a.waiters, caption: 'those that refuse most first',
  columns: [
    { title: 'Key', class: 'key', cell: r => link('limiter', [r.key], r.key) },
    { title: 'Rules', cell: r => r.rules.map(text).join(', ') },
    { title: 'Left', number: true, cell: r => number(r.available) + ' of ' + number(r.capacity) },
    { title: 'Waiting', number: true, cell: r => number(r.waiters) },
    { title: 'Granted', number: true, cell: r => number(r.granted) },
    { title: 'Refused', number: true, cell: r => number(r.refused) },
    { title: 'In shadow', number: true, cell: r => 'shadow_refused' in r ? number(r.shadow_refused) : '' },
  ],
}, words, signal);

export async function limiter(main, [key], signal) {
  const body = element('div');
  main.append(element('h1', {}, 'Limiter ' + key), body);
  const can = await may({ set: ['RL.SET', key, 'FIXED', 1, 1], release: ['RL.RELEASE', key, 1], del: ['DEL', key] }, signal);
  const look = async () => {
    const r = await one(['RL.INFO', key], signal);
    renew(body, list([
      ['Rules', r.rules.map(text).join(', ')],
      ...('shadow_refused' in r ? [['Shadow', 'it refuses nothing, and counts what it would']] : []),
      ['Left', number(r.available) + ' of ' + number(r.capacity)],
      ['Full again in', span(r.reset_after)],
      ['Waiting', number(r.waiters)],
      ['Granted, refused', number(r.granted) + ', ' + number(r.refused)],
      ['Open grants', number(r.grants)],
      ...('shadow_refused' in r ? [['Would have refused', number(r.shadow_refused)]] : []),
      ['RateLimit', text(r.RateLimit)], ['RateLimit-Policy', text(r['RateLimit-Policy'])],
    ]), actions(r));
    return r;
  };
  const actions = r => {
    if (!can.set && !can.release && !can.del) {
      return element('p', { class: 'quiet' }, 'You only look: the parameter http-write and your rights decide what you may change.');
    }
    const rule = field('Rule', { name: 'rule', value: r.rules.map(text).join(' '), size: 30 });
    const set = (...more) => act(['RL.SET', key, ...more, ...rule.querySelector('input').value.trim().split(/\s+/)], null, 'Set').then(ok => ok && look());
    const shadow = () => confirm('While it is in shadow, ' + key + ' refuses nobody. Go on?') && set('SHADOW');
    return element('form', { submit: e => { e.preventDefault(); if (can.set) set(); } }, can.set && [rule, element('button', {}, 'Set'),
      button('Set in shadow', shadow)],
      can.release && button('Give everything back', () => act(['RL.RELEASE', key, r.capacity], 'Give back all that was taken of ' + key + '?', 'Gave back').then(ok => ok && look())),
      can.del && button('Delete', () => act(['DEL', key], 'Delete the limiter ' + key + '?', 'Deleted').then(ok => ok && (location.hash = '#/limiters')), true));
  };
  main.append(button('Look again', look));
  const r = await look();
  main.append(trial(key, r.rules.map(text).join(' '), signal));
}
