// Elements, without a framework. Text never becomes markup.

export function element(name, attributes, ...children) {
  const e = document.createElement(name);
  set(e, attributes);
  e.append(...children.flat().filter(c => c !== null && c !== undefined && c !== false));
  return e;
}

function set(e, attributes) {
  for (const [k, v] of Object.entries(attributes ?? {})) {
    if (typeof v === 'function') e.addEventListener(k, v);
    else if (v === true) e.setAttribute(k, '');
    else if (v !== false && v !== null && v !== undefined) e.setAttribute(k, v);
  }
}

// table has columns of {title, cell(row), number, class} and at most so many rows.
export const rowsMax = 1000;

export function table(caption, columns, rows) {
  const body = element('tbody', {}, rows.slice(0, rowsMax).map(r => element('tr', {}, columns.map(c =>
    element('td', { class: [c.number && 'n', c.class].filter(Boolean).join(' ') || null }, c.cell(r))))));
  return element('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption }, element('table', {},
    element('caption', {}, caption),
    element('thead', {}, element('tr', {}, columns.map(c => element('th', { scope: 'col', class: c.number && 'n' }, c.title)))), body));
}

// renew puts other elements in a box, and leaves the reader where he was: at the button with the same label.
export function renew(box, ...children) {
  const label = box.contains(document.activeElement) ? document.activeElement.textContent : null;
  box.replaceChildren(...children);
  if (label === null) return;
  const again = [...box.querySelectorAll('button')].find(b => b.textContent === label);
  (again ?? document.getElementById('main')).focus({ preventScroll: true });
}

export function list(pairs) {
  return element('dl', {}, pairs.flatMap(([k, v]) => [element('dt', {}, k), element('dd', {}, v)]));
}

export function link(view, words, label) {
  return element('a', { href: '#/' + [view, ...words.map(encodeURIComponent)].join('/') }, label);
}

export function button(label, click, danger) {
  return element('button', { type: 'button', class: danger && 'danger', click }, label);
}

export function field(label, attributes) {
  return element('label', {}, label, element('input', attributes));
}

// graph is a line of values, the newest at the right.
export function graph(label) {
  const space = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(space, 'svg');
  const line = document.createElementNS(space, 'polyline');
  svg.append(line);
  set(svg, { class: 'graph', viewBox: '0 0 120 30', preserveAspectRatio: 'none', role: 'img', 'aria-label': label });
  return {
    svg,
    draw(values) {
      const top = Math.max(...values, 1e-9);
      line.setAttribute('points', values.map((v, i) => (120 - values.length + 1 + i).toFixed(1) + ',' + (29 - 27 * v / top).toFixed(1)).join(' '));
      svg.setAttribute('aria-label', label + ': now ' + number(values.at(-1)) + ', at most ' + number(top));
    },
  };
}

const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const whole = new Intl.NumberFormat('en');

export function number(n) {
  n = Number(n);
  if (!Number.isFinite(n)) return '–';
  return Math.abs(n) < 1e5 ? whole.format(Math.abs(n) < 100 ? Math.round(n * 10) / 10 : Math.round(n)) : short.format(n);
}

export function bytes(n) {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let i = 0;
  for (n = Number(n); n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return (i && n < 100 ? n.toFixed(1) : Math.round(n)) + ' ' + units[i];
}

// span is a time in ms as people say it.
export function span(ms) {
  ms = Number(ms);
  if (!(ms >= 0)) return '–';
  if (ms < 1000) return Math.round(ms) + ' ms';
  const s = ms / 1000;
  if (s < 120) return s.toFixed(s < 10 ? 1 : 0) + ' s';
  if (s < 7200) return Math.round(s / 60) + ' min';
  if (s < 172800) return (s / 3600).toFixed(1) + ' h';
  return (s / 86400).toFixed(1) + ' days';
}

export function time(ms) {
  ms = Number(ms);
  return ms > 0 ? new Date(ms).toLocaleString() : '–';
}
