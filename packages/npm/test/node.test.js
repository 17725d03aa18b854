// The helper in Node's own test runner.
const assert = require('node:assert')
const { test } = require('node:test')
const { limitkv } = require('limitkv/node')

const server = limitkv()
for (const turn of [1, 2]) {
  test(`turn ${turn} begins with nothing`, async () => {
    assert.equal(await server.do('DBSIZE'), 0)
    await server.do('SET', 'k', 'v', 'EX', 60)
    await server.advance(61_000)
    assert.equal(await server.do('GET', 'k'), null)
    await server.do('SET', 'left', turn)
  })
}
