// The helper in Jest.
const { createClient } = require('redis')
const { limitkv } = require('limitkv/jest')

const server = limitkv('--databases', 3)
let client
beforeAll(async () => {
  client = await createClient({ url: server.url }).connect()
})
afterAll(() => client.close())

test.each([1, 2])('turn %i begins with nothing', async (turn) => {
  expect(await client.dbSize()).toBe(0)
  await client.set('k', 'v', { expiration: { type: 'EX', value: 60 } })
  await server.advance(61_000)
  expect(await client.get('k')).toBe(null)
  await client.set('left', String(turn))
})

test('flags are passed on', async () => {
  expect(await client.configGet('databases')).toEqual({ databases: '3' })
})
