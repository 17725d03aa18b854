// Middleware for Express that limits requests by limitkv:
//
//   const limit = require('@limitkv/middleware/express'); // or copy this file and limiter.js
//   app.use(limit({ client, limits: (req) => ({ key: `api:${req.ip}`, rule: 'GCRA 100 60000 BURST 20' }) }));
//
// It sends RateLimit and RateLimit-Policy with each answer. A refused request gets 429 with Retry-After, or what
// refused(req, res) sends. The other options are those of limiter.js.
'use strict';
const { Limiter, extended, MESSAGES } = require('./limiter.js');

module.exports = function limit({ refused, ...options }) {
  const limiter = new Limiter(options);
  return async function limitkv(req, res, next) {
    let decision;
    try {
      decision = await limiter.decide(req);
    } catch (error) {
      return next(error);
    }
    for (const [name, value] of Object.entries(decision.headers)) res.set(name, extended(res.get(name), name, value));
    if (decision.status === 200) return next();
    res.status(decision.status);
    return refused ? refused(req, res) : res.json({ error: MESSAGES[decision.status] });
  };
};
