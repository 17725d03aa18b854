// Plugin for Fastify that limits requests by limitkv:
//
//   await app.register(require('@limitkv/middleware/fastify'), { client, limits: (request) => ({ key: `api:${request.ip}`, rule: 'LOG 100 60000' }) });
//
// It sends RateLimit and RateLimit-Policy with each answer. A refused request gets 429 with Retry-After. hook says when it
// is asked: 'onRequest', or 'preHandler' where limits needs what other hooks find out. The other options are those of
// limiter.js.
'use strict';
const { Limiter, extended, MESSAGES } = require('./limiter.js');

module.exports = async function limitkv(fastify, { hook = 'onRequest', ...options }) {
  const limiter = new Limiter(options);
  fastify.addHook(hook, async (request, reply) => {
    const { status, headers } = await limiter.decide(request);
    for (const [name, value] of Object.entries(headers)) reply.header(name, extended(reply.getHeader(name), name, value));
    if (status !== 200) return reply.code(status).send({ error: MESSAGES[status] });
  });
};

// It is for the routes of whoever registers it, not for routes of its own, of which it has none.
module.exports[Symbol.for('skip-override')] = true;
