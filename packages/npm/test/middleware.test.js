// @limitkv/middleware, in real apps of Express and Fastify, with a server of the helper.
const assert = require('node:assert')
const fs = require('node:fs')
const { test } = require('node:test')
const express = require('express')
const fastify = require('fastify')
const { createClient } = require('redis')
const { limitkv } = require('limitkv/node')

const server = limitkv()

const apps = {
  async express(options) {
    const app = express()
    app.use(require('@limitkv/middleware/express')(options))
    app.get('/', (req, res) => res.send('here you are'))
    const listener = app.listen(0, '127.0.0.1')
    await new Promise((resolve) => listener.once('listening', resolve))
    return { port: listener.address().port, close: () => listener.close() }
  },
  async fastify(options) {
    const app = fastify()
    await app.register(require('@limitkv/middleware/fastify'), options)
    app.get('/', async () => 'here you are')
    await app.listen({ port: 0, host: '127.0.0.1' })
    return { port: app.server.address().port, close: () => app.close() }
  },
}

for (const [name, start] of Object.entries(apps)) {
  test(`${name}: two of two pass`, async () => {
    await server.freeze(1_700_000_000_000)
    const client = await createClient({ url: server.url }).connect()
    const app = await start({ client, timeout: 20_000, limits: (req) => ({ key: `api:${req.headers['x-user']}`, rule: 'LOG 2 60000' }) })
    const get = () => fetch(`http://127.0.0.1:${app.port}/`, { headers: { 'x-user': 'ann', connection: 'close' } })
    const answers = [await get(), await get(), await get()]
    assert.deepEqual(answers.map((a) => a.status), [200, 200, 429])
    assert.equal(answers[1].headers.get('ratelimit'), '"default";r=0;t=60')
    assert.equal(answers[2].headers.get('ratelimit-policy'), '"default";q=2;w=60')
    assert.equal(answers[2].headers.get('retry-after'), '60')
    await app.close()
    client.destroy()
  })
}

test('the examples of its README', async () => {
  const readme = fs.readFileSync(require.resolve('@limitkv/middleware/package.json').replace('package.json', 'README.md'), 'utf8')
  const examples = readme.split('```js\n').slice(1).map((part) => part.split('```')[0])
  assert.equal(examples.length, 2)
  const Program = (async () => {}).constructor
  const client = await createClient({ url: server.url }).connect()
  const app = fastify()
  await new Program('require', 'client', 'app', examples[0])(require, client, express())
  await new Program('require', 'client', 'app', examples[1])(require, client, app)
  app.get('/', async () => 'here you are')
  assert.equal((await app.inject('/')).headers['ratelimit-policy'], '"default";q=100;w=60')
  await app.close()
  client.destroy()
})
