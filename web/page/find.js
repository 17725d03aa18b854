// Finding keys of a type by what they begin with, and showing what is known of each.
import { Failure, keys, run } from './server.js';
import { button, element, field, rowsMax, table } from './elements.js';

const keysAtOnce = 500;
const commandsAtOnce = 100;

// find shows a view of keys: those of a type, each with what the command named info replies, by order and in columns.
export async function find(main, { title, view, type, info, order, caption, columns }, [prefix = ''], signal) {
  const results = element('div');
  const input = field('Keys that begin with', { name: 'prefix', value: prefix, autocomplete: 'off' });
  main.append(element('h1', {}, title), element('form', {
    submit: e => { e.preventDefault(); location.hash = '#/' + view + '/' + encodeURIComponent(input.querySelector('input').value); },
  }, input, element('button', {}, 'Find')), results);
  let next = null, rows = [];
  const more = async () => {
    const some = await keys(type, prefix, keysAtOnce, next, signal);
    next = some.next;
    for (let i = 0; i < some.found.length; i += commandsAtOnce) {
      const part = some.found.slice(i, i + commandsAtOnce);
      const replies = await run(part.map(k => [info, k]), signal);
      part.forEach((key, j) => replies[j] instanceof Failure || rows.push({ key, ...replies[j] }));
    }
    rows.sort((a, b) => order(a, b) || (a.key < b.key ? -1 : 1));
    rows = rows.slice(0, rowsMax);
    results.replaceChildren(table(rows.length + ' ' + title.toLowerCase() + (next ? ' so far, ' : ', ') + caption, columns, rows),
      next ? button('Look further', more) : '');
  };
  await more();
}
