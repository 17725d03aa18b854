// Commands to the server, and words to the reader.

// Failure is an error reply.
export class Failure extends Error {}

const database = document.getElementById('db');

async function post(body, signal) {
  const answer = await fetch('api/commands', { method: 'POST', signal, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  if (!answer.ok) throw new Failure(await answer.text());
  return answer.json();
}

// run runs commands, one after the other, and returns their replies; errors among them are Failures.
export async function run(commands, signal) {
  return (await post({ db: Number(database.value) || 0, commands: commands.map(c => c.map(String)) }, signal)).map(r => r && typeof r === 'object' && 'error' in r && Object.keys(r).length === 1 ? new Failure(text(r.error)) : r);
}

// one runs a command and returns its reply, or throws its error.
export async function one(command, signal) {
  const [reply] = await run([command], signal);
  if (reply instanceof Failure) throw reply;
  return reply;
}

// text is a string of a reply as people read it: what is no text comes as base64.
export function text(s) {
  if (s === null || s === undefined) return '';
  if (typeof s === 'object' && 'base64' in s) return 'base64:' + s.base64;
  return String(s);
}

// info is INFO's sections as one object.
export async function info(sections, signal) {
  const fields = {};
  for (const line of (await one(['INFO', ...sections], signal)).split('\r\n')) {
    const at = line.indexOf(':');
    if (at > 0 && line[0] !== '#') fields[line.slice(0, at)] = line.slice(at + 1);
  }
  return fields;
}

// say tells the reader something, aloud where a screen reader is used.
export function say(words) { document.getElementById('status').textContent = words; }

// keys finds keys of a type by what they begin with. It stops at so many, or when it has looked at more than a page
// should ask for; next goes on from there.
export async function keys(type, prefix, max, next, signal) {
  const found = [];
  let cursor = next ?? '0';
  for (let steps = 0; steps < 200; steps++) {
    const [at, some] = await one(['SCAN', cursor, 'TYPE', type, 'MATCH', escaped(prefix) + '*', 'COUNT', '5000'], signal);
    for (const k of some) if (typeof k === 'string') found.push(k);
    cursor = text(at);
    if (cursor === '0' || found.length >= max) break;
  }
  return { found, next: cursor === '0' ? null : cursor };
}

const escaped = s => s.replace(/[\\*?[\]]/g, '\\$&');

// may tells of commands, by name, which of them the user may run here; nothing is run.
export async function may(commands, signal) {
  const names = Object.keys(commands);
  const reasons = await post({ try: true, commands: names.map(n => commands[n].map(String)) }, signal);
  return Object.fromEntries(names.map((n, i) => [n, reasons[i] === '']));
}

// act runs a command that changes something, after the reader has agreed, and tells what came of it.
export async function act(command, question, done) {
  if (question && !confirm(question)) return false;
  try {
    const reply = await one(command);
    say(done + (typeof reply === 'number' ? ' (' + reply + ')' : ''));
    return true;
  } catch (e) {
    say(e.message);
    return false;
  }
}
