// A console, with the names of commands and their syntax.
import { Failure, one, run, text } from './server.js';
import { element } from './elements.js';

const history = [];

export async function console_(main, words, signal) {
  const output = element('div', { id: 'output', role: 'log', 'aria-label': 'Replies', tabindex: 0 });
  const names = element('datalist', { id: 'names' });
  const hint = element('p', { class: 'quiet', id: 'hint' });
  const input = element('input', { id: 'command', list: 'names', size: 60, autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', 'aria-describedby': 'hint' });
  let at = history.length, hinted = '';
  input.addEventListener('keydown', e => {
    if (e.key !== 'ArrowUp' && e.key !== 'ArrowDown' || input.value && at === history.length) return;
    at = Math.min(Math.max(at + (e.key === 'ArrowUp' ? -1 : 1), 0), history.length);
    input.value = history[at] ?? '';
    e.preventDefault();
  });
  input.addEventListener('input', async () => {
    const name = input.value.trim().split(/\s+/)[0].toLowerCase();
    if (name === hinted) return;
    hinted = name;
    const [docs] = name ? await run([['COMMAND', 'DOCS', name]], signal) : [{}];
    if (hinted === name) hint.textContent = docs instanceof Failure ? '' : Object.values(docs).map(d => text(d.summary)).join(' ');
  });
  main.append(element('h1', {}, 'Console'), output, element('form', {
    submit: async e => {
      e.preventDefault();
      const line = input.value.trim();
      const args = split(line);
      if (!line) return;
      if (history.at(-1) !== line) history.push(line);
      at = history.length;
      input.value = '';
      let shown;
      try {
        if (!args) throw new Failure('quotes are not balanced');
        shown = show(await one(args, signal), '');
      } catch (error) {
        if (error.name === 'AbortError') return;
        shown = '(error) ' + error.message;
      }
      output.append(element('pre', {}, '> ' + line + '\n' + shown));
      while (output.childElementCount > 200) output.firstElementChild.remove();
      output.lastElementChild.scrollIntoView({ block: 'nearest' });
    },
  }, element('label', {}, 'Command', input), names, element('button', {}, 'Run')), hint);
  input.focus();
  names.append(...(await one(['COMMAND', 'LIST'], signal)).sort().map(n => element('option', { value: n.toUpperCase() })));
}

// split cuts a line into words, which quotes hold together; null where they are not balanced.
function split(line) {
  const words = [];
  const word = /\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s"']+))(?=\s|$)/y;
  while (word.lastIndex < line.length) {
    const from = word.lastIndex, m = word.exec(line);
    if (!m) return line.slice(from).trim() ? null : words;
    words.push(m[3] ?? (m[1] ?? m[2]).replace(/\\(.)/g, (_, c) => ({ n: '\n', r: '\r', t: '\t' })[c] ?? c));
  }
  return words;
}

// show is a reply as redis-cli has it.
function show(reply, indent) {
  if (reply === null) return '(nil)';
  if (typeof reply === 'number') return '(integer) ' + reply;
  if (reply instanceof Failure) return '(error) ' + reply.message;
  if (Array.isArray(reply)) {
    return reply.length ? reply.map((r, i) => (i ? indent : '') + (i + 1) + ') ' + show(r, indent + '   ')).join('\n') : '(empty array)';
  }
  if (typeof reply === 'object' && !('base64' in reply)) {
    return Object.entries(reply).map(([k, v], i) => (i ? indent : '') + k + ' => ' + show(v, indent + '   ')).join('\n');
  }
  return text(reply);
}
