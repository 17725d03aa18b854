// Trying a rule on recorded traffic: the page counts the calls that come to a limiter, and works out what another rule would
// have done with them. Nothing changes for those who call.
import { run } from './server.js';
import { element, field, list, number, span } from './elements.js';

const everyMillis = 500;
const samplesMax = 7200; // an hour

// kernels are the rules that need nothing but the time and the number of calls, for calls that cost 1. Each tells what is left
// and takes, at a time in ms.
const kernels = {
  GCRA(count, period, burst = count) {
    let tokens = burst, last = null;
    return {
      left(now) {
        if (last !== null) tokens = Math.min(burst, tokens + (now - last) * count / period);
        last = now;
        return Math.floor(tokens + 1e-9);
      },
      take(now, n) { tokens -= n; },
    };
  },
  FIXED(count, period) {
    let end = -Infinity, used = 0;
    return {
      left: now => now >= end ? count : count - used,
      take(now, n) {
        if (now >= end) [end, used] = [now + period, 0];
        used += n;
      },
    };
  },
  LOG(count, period) {
    let taken = [], used = 0;
    return {
      left(now) {
        while (taken.length && taken[0][0] <= now - period) used -= taken.shift()[1];
        return count - used;
      },
      take(now, n) {
        taken.push([now, n]);
        used += n;
      },
    };
  },
  WINDOW(count, period) {
    let start = 0, before = 0, used = 0; // a window begins with a call, not at a round time
    return {
      left(now) {
        if (now - start >= 2 * period || before + used === 0) [start, before, used] = [now, 0, 0];
        else if (now - start >= period) [start, before, used] = [used ? start + period : now, used, 0];
        return count - used - Math.ceil(before * (period - (now - start)) / period);
      },
      take(now, n) { used += n; },
    };
  },
};

// parse makes the kernels of a text such as "GCRA 10 1000 BURST 20 LOG 100 60000", or null where it has another rule.
export function parse(text) {
  const part = /\s*(GCRA|FIXED|LOG|WINDOW)\s+(\d+)\s+(\d+)(?:\s+BURST\s+(\d+))?(?=\s|$)/iy;
  const all = [];
  for (text = text.trim(); part.lastIndex < text.length;) {
    const m = part.exec(text);
    const [count, period, burst] = (m ?? []).slice(2).map(n => n === undefined ? n : Number(n));
    if (!m || !count || !period || burst !== undefined && (m[1].toUpperCase() !== 'GCRA' || !burst)) return null;
    all.push(kernels[m[1].toUpperCase()](count, period, burst));
  }
  return all.length ? all : null;
}

// replay has rules decide on calls, pairs of a time in ms and how many came, and returns how many they would have granted.
export function replay(rules, calls) {
  let granted = 0;
  for (const [now, n] of calls) {
    const some = Math.min(n, ...rules.map(r => Math.max(0, r.left(now))));
    if (some > 0) for (const r of rules) r.take(now, some);
    granted += some;
  }
  return granted;
}

// trial is the part of a limiter's view that does it.
export function trial(key, rule, signal) {
  let calls = [], begun = 0, took = 0, granted = 0, last = null, recording = false;
  const input = field('Rule', { name: 'trial', value: rule, size: 30, autocomplete: 'off' });
  const button = element('button', { type: 'button' }, 'Record'), result = element('div');
  const show = () => {
    const all = calls.reduce((n, [, some]) => n + some, 0), rules = parse(input.querySelector('input').value);
    const would = rules && replay(rules, calls), share = n => number(n) + (all ? ' (' + number(100 * n / all) + ' %)' : '');
    result.replaceChildren(list([
      ['Recorded', span(took) + ', ' + number(all) + ' calls, at most ' + number(Math.max(0, ...perSecond(calls))) + ' in a second'],
      ['The limiter granted', share(granted)],
      ['This rule would have granted', rules ? share(would) : 'it is none of GCRA, FIXED, LOG and WINDOW'],
      ['and refused', rules ? share(all - would) : '–'],
    ]));
  };
  const look = async () => {
    const [r] = await run([['RL.INFO', key]], signal);
    const now = r.granted === undefined ? { granted: 0, refused: 0 } : r; // it is gone as long as nobody calls
    if (last) {
      const again = now.granted < last.granted || now.refused < last.refused; // it was deleted meanwhile
      const [g, f] = [now.granted - (again ? 0 : last.granted), now.refused - (again ? 0 : last.refused)];
      took = performance.now() - begun;
      granted += g;
      if (g + f > 0 && calls.length < samplesMax) calls.push([took, g + f]);
    }
    last = now;
  };
  const record = async () => {
    [calls, took, granted, last, begun] = [[], 0, 0, null, performance.now()];
    while (recording && !signal.aborted) {
      await look();
      show();
      await new Promise(done => setTimeout(done, everyMillis));
    }
  };
  button.addEventListener('click', () => {
    recording = !recording;
    button.textContent = recording ? 'Stop' : 'Record anew';
    if (recording) record().catch(e => {
      if (signal.aborted) return;
      recording = false;
      button.textContent = 'Record anew';
      result.append(element('p', { class: 'bad' }, e.message));
    });
  });
  input.addEventListener('input', show);
  return element('section', { 'aria-labelledby': 'trial' }, element('h2', { id: 'trial' }, 'Try a rule on recorded traffic'),
    element('p', { class: 'quiet' }, 'This page counts the calls that come while it records, and shows what the rule would have done with them. Each ' +
      'counts as a cost of 1. Callers notice nothing; those who are refused now and call again are in the record, too.'),
    element('form', { submit: e => e.preventDefault() }, input, button), result);
}

function perSecond(calls) {
  const seconds = new Map();
  for (const [at, n] of calls) seconds.set(Math.floor(at / 1000), (seconds.get(Math.floor(at / 1000)) ?? 0) + n);
  return seconds.values();
}
