// The slow log.
import { one, text } from './server.js';
import { button, element, number, table, time } from './elements.js';

export async function slow(main, words, signal) {
  const body = element('div');
  const look = async () => {
    const entries = await one(['SLOWLOG', 'GET', '200'], signal);
    body.replaceChildren(table(entries.length + ' slow commands, the newest first', [
      { title: 'When', cell: e => time(e[1] * 1000) },
      { title: 'Took, µs', number: true, cell: e => number(e[2]) },
      { title: 'Command', class: 'payload', cell: e => e[3].map(text).join(' ').slice(0, 500) },
      { title: 'Client', cell: e => [text(e[5]), text(e[4])].filter(Boolean).join(' ') },
    ], entries));
  };
  main.append(element('h1', {}, 'Slow log'), body, button('Look again', look));
  await look();
}
