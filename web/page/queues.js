// Queues: how much waits, since when, and every entry of it.
import { act, may, one, text } from './server.js';
import { button, element, field, link, list, number, renew, span, table, time } from './elements.js';
import { find } from './find.js';

const entriesMax = 100;

export const queues = (main, words, signal) => find(main, {
  title: 'Queues', view: 'queues', type: 'delayqueue', info: 'DQ.INFO',
  order: (a, b) => b.oldest_age - a.oldest_age || b.ready - a.ready, caption: 'the latest first',
  columns: [
    { title: 'Key', class: 'key', cell: r => link('queue', [r.key], r.key) },
    { title: 'Ready', number: true, cell: r => number(r.ready) },
    { title: 'Delayed', number: true, cell: r => number(r.delayed) },
    { title: 'Leased', number: true, cell: r => number(r.leased) },
    { title: 'Oldest', number: true, cell: r => r.ready > 0 ? span(r.oldest_age) : '' },
    { title: 'Workers waiting', number: true, cell: r => number(r.waiters) },
    { title: 'Delivered', number: true, cell: r => number(r.delivered) },
    { title: 'Dead', number: true, cell: r => number(r.dead_lettered) },
    { title: 'State', cell: r => r.paused ? 'paused' : '' },
  ],
}, words, signal);

const states = { READY: 'Ready', DELAYED: 'Delayed', LEASED: 'Leased' };

export async function queue(main, [key, state = 'READY', pattern = ''], signal) {
  const head = element('div'), entries = element('div');
  const can = await may({ set: ['DQ.SET', key, 'PAUSED', 1], del: ['DEL', key], rem: ['DQ.REM', key, 'x'], touch: ['DQ.TOUCH', key, 0, 'x'],
    nack: ['DQ.NACK', key, 'x'], add: ['DQ.ADD', key, 'x'], requeue: ['DQ.REQUEUE', key, key] }, signal);
  main.append(element('h1', {}, 'Queue ' + key), head);
  const look = async () => {
    const r = await one(['DQ.INFO', key], signal);
    renew(head, list([
      ['Ready, delayed, leased', [r.ready, r.delayed, r.leased].map(number).join(', ')],
      ['Oldest that is due', r.ready > 0 ? span(r.oldest_age) : 'none'],
      ['Next due', time(r.next_due)],
      ['Workers waiting', number(r.waiters)],
      ['Added, delivered', number(r.added) + ', ' + number(r.delivered)],
      ['Acknowledged, given back, lease ended', [r.acked, r.nacked, r.expired].map(number).join(', ')],
      ['Dead', number(r.dead_lettered)],
      ['Lease, tries', (r.lease > 0 ? span(r.lease) : 'none') + ', ' + (r.tries > 0 ? number(r.tries) : 'any number')],
      ...(text(r.dead) ? [['Dead-letter queue', link('queue', [text(r.dead)], text(r.dead))]] : []),
      ...(r.groups > 0 ? [['Groups', number(r.groups)]] : []),
    ]), element('div', {}, button('Look again', () => Promise.all([look(), page('')])), can.set && [' ',
      r.paused ? button('Go on', () => act(['DQ.SET', key, 'PAUSED', '0'], null, 'Goes on').then(look))
        : button('Pause', () => act(['DQ.SET', key, 'PAUSED', '1'], null, 'Paused').then(look))], can.del && [' ',
      button('Delete', () => act(['DEL', key], 'Delete the queue ' + key + ' with ' + (r.ready + r.delayed + r.leased) + ' entries?', 'Deleted')
        .then(ok => ok && (location.hash = '#/queues')), true)]), ...(r.schedules.length > 0 ? [schedules(r.schedules)] : []));
  };
  const schedules = all => table(all.length + ' schedules', [
    { title: 'Schedule', class: 'key', cell: s => text(s[0]) },
    { title: 'When', cell: s => text(s[1]) },
    { title: 'Next', cell: s => time(s[2]) },
    ...(can.rem ? [{ title: 'Do', cell: s => button('End', () => act(['DQ.REM', key, text(s[0])], 'End the schedule ' + text(s[0]) + '?', 'Ended').then(look), true) }] : []),
  ], all);
  const choose = element('select', { name: 'state' }, Object.entries(states).map(([v, label]) => element('option', { value: v, selected: v === state }, label)));
  const find = field('Id or text, * for anything', { name: 'pattern', value: pattern, autocomplete: 'off' });
  main.append(element('h2', {}, 'Entries'), element('form', {
    submit: e => {
      e.preventDefault();
      const at = '#/' + ['queue', key, choose.value, find.querySelector('input').value].map(encodeURIComponent).join('/');
      if (at === location.hash) page(''); else location.hash = at;
    },
  }, element('label', {}, 'State', choose), find, element('button', {}, 'Find')), entries);
  if (can.add || can.requeue) main.append(element('h2', {}, 'More'), ...[can.add && adder(), can.requeue && requeuer()].filter(Boolean));

  const page = async from => {
    const found = await one(['DQ.PEEK', key, state, ...(from ? ['FROM', from] : []), ...(pattern ? ['MATCH', pattern] : []), 'FULL', 'COUNT', entriesMax], signal);
    const after = () => page('');
    renew(entries, table((from ? 'From ' + from + ': ' : '') + found.length + ' entries that are ' + states[state].toLowerCase(), [
      { title: 'Id', class: 'key', cell: e => text(e.id) },
      { title: 'Payload', class: 'payload', cell: e => cut(text(e.payload)) },
      { title: 'Due', cell: e => time(e.due) },
      { title: 'Attempt', number: true, cell: e => number(e.attempt) },
      { title: 'Lease until', cell: e => e.lease_until > 0 ? time(e.lease_until) : '' },
      { title: 'Group, priority', cell: e => [text(e.group), e.prio > 0 && e.prio].filter(Boolean).join(', ') },
      { title: 'Last error', cell: e => cut(text(e.reason)) },
      ...(can.touch || can.nack || can.rem ? [{ title: 'Do', cell: e => acts(e, after) }] : []),
    ], found), found.length === entriesMax ? button('Next', () => page(plainID(text(found.at(-1).id)))) : '');
  };
  const acts = (e, after) => {
    const id = plainID(text(e.id));
    return [
      can.touch && e.state === 'delayed' && button('Now', () => act(['DQ.TOUCH', key, '0', id], null, 'Due now').then(after)),
      can.nack && e.state === 'leased' && button('Give back', () => act(['DQ.NACK', key, text(e.id)], 'Give ' + id + ' back although somebody works on it?', 'Given back').then(after)),
      can.rem && button('Remove', () => act(['DQ.REM', key, id], 'Remove ' + id + '?', 'Removed').then(after), true),
    ];
  };
  function adder() {
    const payload = field('Payload', { name: 'payload', required: true }), delay = field('Delay in ms', { name: 'delay', type: 'number', min: 0, value: 0 });
    const cron = field('Or again and again, by cron: 30 2 * * *', { name: 'cron', autocomplete: 'off' }), id = field('Id, or empty', { name: 'id', autocomplete: 'off' });
    return element('form', {
      submit: e => {
        e.preventDefault();
        const [said, after, when, name] = [payload, delay, cron, id].map(x => x.querySelector('input').value);
        act(['DQ.ADD', key, ...(when ? ['CRON', when] : ['DELAY', after || 0]), ...(name ? ['ID', name] : []), said], null, 'Added').then(() => Promise.all([look(), page('')]));
      },
    }, payload, id, delay, cron, element('button', {}, 'Add'));
  }
  function requeuer() {
    const to = field('Retry: move entries to the queue', { name: 'to', required: true }), id = field('Id, or empty for all', { name: 'id' });
    return element('form', {
      submit: e => {
        e.preventDefault();
        const [queue, one] = [to, id].map(x => x.querySelector('input').value);
        act(['DQ.REQUEUE', key, queue, ...(one ? ['ID', one] : [])], (one || 'All entries') + ' of ' + key + ' to ' + queue + '?', 'Moved').then(() => Promise.all([look(), page('')]));
      },
    }, to, id, element('button', {}, 'Retry'));
  }
  await Promise.all([look(), page('')]);
}

// plainID is an entry's id without the attempt that a lease has behind it.
const plainID = id => id.replace(/#\d+$/, '');

const cut = s => s.length > 500 ? s.slice(0, 500) + ' … (' + s.length + ')' : s;
