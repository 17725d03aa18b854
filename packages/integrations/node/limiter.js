// What the middlewares of Express and Fastify share: asking the server, and what to tell the client.
'use strict';

const RULE = /^(GCRA|LOG|WINDOW|FIXED) (\d+) (\d+)( BURST \d+)?$|^CAL (\d+) (HOUR|DAY|WEEK|MONTH)( TZ \S+)?( FROM \d+)?$|^TOTAL (\d+)$/;
const CALENDAR_SECONDS = { HOUR: 3600, DAY: 86400, WEEK: 604800 }; // months differ
const MISTAKES = /^(ERR|WRONGTYPE|NOPERM|NOAUTH|WRONGPASS|CROSSSLOT)\b/; // replies that trying again does not mend

const seconds = (ms) => Math.ceil(ms / 1000);

// policyOf writes a limit as an item of RateLimit-Policy, and checks it.
function policyOf({ policy = 'default', key, rule }) {
  if (typeof key !== 'string' || key === '') throw new TypeError(`limitkv: ${key} is no key of a limiter`);
  const part = RULE.exec(rule);
  if (!part) throw new TypeError(`limitkv: ${rule} is no rule for a middleware; FIXED 100 60000 is one`);
  if (!/^[\w.:-]+$/.test(policy)) throw new TypeError(`limitkv: ${policy} is no name for a policy`);
  const [, , count, ms, , calendarCount, unit, , , total] = part;
  const window = ms ? seconds(ms) : CALENDAR_SECONDS[unit];
  return `"${policy}";q=${count ?? calendarCount ?? total}${window ? `;w=${window}` : ''}`;
}

class Limiter {
  // client: of node-redis or ioredis.
  // limits: a function of the request that returns a limit { policy, key, rule, cost }, several in an array, of which all
  //   are taken or none, or nothing for a request that is free. A rule is written as RL.ACQUIRE has it.
  // failureMode: what happens to requests while the server is away, or does not answer within timeout ms: 'open', they
  //   pass, or 'closed', they get 503. onError is told of it.
  constructor({ client, limits, failureMode = 'open', timeout = 100, onError = () => {} }) {
    if (!client || typeof limits !== 'function') throw new TypeError('limitkv: client and limits are needed');
    if (!['open', 'closed'].includes(failureMode)) throw new TypeError(`limitkv: failureMode is ${failureMode}, it can be open or closed`);
    Object.assign(this, { client, limits, failureMode, timeout, onError });
  }

  // decide returns { status, headers }: status is 200, 429 or 503.
  async decide(request) {
    const limits = [await this.limits(request) ?? []].flat();
    if (limits.length === 0) return { status: 200, headers: {} };
    const headers = { 'RateLimit-Policy': limits.map(policyOf).join(', ') };
    try {
      const replies = await this.#inTime(() => this.#ask(limits));
      headers.RateLimit = limits.map(({ policy = 'default' }, i) => {
        const [, , remaining, , reset] = replies.state[i];
        return `"${policy}";r=${Math.max(0, remaining)}${reset < 0 ? '' : `;t=${seconds(reset)}`}`;
      }).join(', ');
      const [limited, , , wait] = replies.decision;
      if (!limited) return { status: 200, headers };
      if (wait >= 0) headers['Retry-After'] = String(Math.max(1, seconds(wait)));
      return { status: 429, headers };
    } catch (error) {
      if (/cost is above the limiter's capacity/.test(error.message)) return { status: 429, headers };
      if (MISTAKES.test(error.message)) throw error;
      this.onError(error);
      if (this.failureMode === 'open') return { status: 200, headers };
      return { status: 503, headers: { ...headers, 'Retry-After': '1' } };
    }
  }

  // #ask takes from one limiter, or from several at once. Of several the reply has only the state of the one that
  // decided, so that of each is read behind it, in the same write.
  async #ask(limits) {
    if (limits.length === 1) {
      const [{ key, rule, cost = 1 }] = limits;
      const decision = await this.#send('RL.ACQUIRE', key, cost, ...rule.split(' '));
      return { decision, state: [decision] };
    }
    const [decision, ...state] = await Promise.all([
      this.#send('RL.MACQUIRE', limits.length, ...limits.flatMap(({ key, cost = 1 }) => [key, cost]),
        ...limits.flatMap(({ rule }, i) => ['RULE', i + 1, ...rule.split(' ')])),
      ...limits.map(({ key, rule }) => this.#send('RL.ACQUIRE', key, 'PEEK', ...rule.split(' '))),
    ]);
    return { decision, state };
  }

  #send(...args) {
    const { client } = this;
    if (typeof client.call === 'function') return client.call(...args.map(String));
    return client.sendCommand(args.map(String));
  }

  // #inTime does not let a client collect commands while it has no connection: they would be taken much later.
  async #inTime(ask) {
    const { client, timeout } = this;
    if (client.isReady === false || (client.status !== undefined && client.status !== 'ready')) throw new Error('no connection to limitkv');
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`limitkv did not answer within ${timeout} ms`)), timeout);
    });
    const answer = ask();
    answer.catch(() => {}); // of an answer that comes too late
    try {
      return await Promise.race([answer, late]);
    } finally {
      clearTimeout(timer);
    }
  }
}

// extended puts a field behind what another middleware has set: both are lists.
const extended = (before, name, value) => (before && name.startsWith('RateLimit') ? `${before}, ${value}` : value);

const MESSAGES = { 429: 'Too Many Requests', 503: 'Service Unavailable' };

module.exports = { Limiter, extended, MESSAGES };
