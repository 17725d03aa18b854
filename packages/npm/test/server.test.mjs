// What the helpers give, in Vitest with node-redis; a server of its own, its end, and what it does when its starter is killed.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createClient } from 'redis'
import { ReplyError, start } from 'limitkv'
import { limitkv } from 'limitkv/vitest'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'

const server = limitkv()
let client
const connect = (url) => createClient({ url }).on('error', () => {}).connect()
beforeAll(async () => {
  client = await connect(server.url)
})
afterAll(() => client.destroy())

const alive = (pid) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('each test begins anew', () => {
  afterEach(async () => {
    await client.set('left', '1')
    await server.freeze(1_700_000_000_000)
    await server.failNext('get', 9, 'ERR left')
  })
  for (const turn of [1, 2]) {
    test(`${turn}`, async () => {
      expect(await client.dbSize()).toBe(0)
      expect(await client.get('left')).toBe(null)
      expect(await server.do('LKV.CLOCK', 'NOW')).toBeGreaterThan(1_700_000_000_000)
    })
  }
})

test('the clock is the test\'s', async () => {
  await server.freeze(new Date(1_700_000_000_000))
  await client.set('k', 'v', { expiration: { type: 'EX', value: 60 } })
  await server.advance(59_000)
  expect(await client.pTTL('k')).toBe(1000)
  await server.advance(2000)
  expect(await client.get('k')).toBe(null)
  expect(await server.do('LKV.CLOCK', 'NOW')).toBe(1_700_000_061_000)
  await server.resume()
  expect(await server.do('LKV.CLOCK', 'NOW')).toBeGreaterThan(1_700_000_061_000)
})

test('a snapshot is brought back, with the clock', async () => {
  await server.freeze(1_700_000_000_000)
  await client.set('fixture', 'v', { expiration: { type: 'EX', value: 60 } })
  const snapshot = await server.snapshot()
  for (let i = 0; i < 2; i++) {
    await client.set('more', 'v')
    await server.advance(3_600_000)
    expect(await client.keys('*')).toEqual(['more'])
    await snapshot.restore()
    expect(await client.keys('*')).toEqual(['fixture'])
    expect(await client.ttl('fixture')).toBe(60)
  }
  await snapshot.drop()
  expect(await server.do('LKV.SNAPSHOT', 'LIST')).toEqual([])
})

test('faults and what was received', async () => {
  await server.record()
  await server.failNext('get', 1, 'LOADING not now')
  await expect(client.get('k')).rejects.toThrow('LOADING not now')
  expect(await client.get('k')).toBe(null)
  expect(await server.received('get')).toEqual([['GET', 'k'], ['GET', 'k']])
  await server.failNext('*', 100, 'ERR all')
  await server.clearFaults()
  expect(await client.ping()).toBe('PONG')
  await server.freeze()
  await server.delayNext('echo', 1, 60_000)
  let replied = false
  const echo = client.echo('x').then(() => { replied = true })
  while ((await server.received('echo')).length === 0);
  expect(replied).toBe(false)
  await server.advance(60_000)
  await echo
  const other = await connect(server.url)
  await server.disconnectNext('SET user:*', 1)
  await other.set('user:1', 'v').catch(() => {})
  other.destroy()
  expect((await server.received('SET user:*')).length).toBeGreaterThan(0)
})

test('namespaces are apart', async () => {
  await client.set('k', 'mine')
  const spaces = await Promise.all([server.namespace(), server.namespace()])
  for (const space of spaces) {
    const inside = await connect(space.url)
    expect(await inside.get('k')).toBe(null)
    await inside.set('k', space.name)
    inside.destroy()
  }
  await spaces[0].flushAll()
  expect(await spaces[1].do('GET', 'k')).toBe(spaces[1].name)
  expect(await client.get('k')).toBe('mine')
  for (const space of spaces) await space.drop()
  expect(await server.do('LKV.NAMESPACE', 'LIST')).toEqual([])
})

test('random replies are repeated, any command can be sent', async () => {
  await client.sAdd('s', [...'abcdefgh'])
  await server.seed(7)
  const drawn = await client.sRandMemberCount('s', 4)
  await server.seed(7)
  expect(await client.sRandMemberCount('s', 4)).toEqual(drawn)
  expect(await server.do('SET', 'k', Buffer.from('a\r\nb'))).toBe('OK')
  const many = await Promise.all([server.do('GET', 'k'), server.do('GET', 'no'), server.do('INCRBY', 'n', 7), server.do('MGET', 'k', 'no')])
  expect(many).toEqual(['a\r\nb', null, 7, ['a\r\nb', null]])
  await expect(server.do('NO.SUCH')).rejects.toThrow(ReplyError)
  expect(await server.do('ECHO', 'x'.repeat(1_000_000))).toHaveLength(1_000_000)
})

test('a server of its own, with flags, until it is stopped', async () => {
  const own = await start('--requirepass', 's/cr:t', '--databases', 3)
  const inside = await connect(own.url)
  expect(await inside.configGet('databases')).toEqual({ databases: '3' })
  inside.destroy()
  const space = await own.namespace()
  expect(await space.do('DBSIZE')).toBe(0)
  expect(alive(own.pid)).toBe(true)
  await own.stop()
  await own.stop()
  expect(alive(own.pid)).toBe(false)
  await expect(own.do('PING')).rejects.toThrow('closed')
  await expect(start('--no-such-flag', 1)).rejects.toThrow('no-such-flag')
})

const ends = async (pid) => {
  for (let i = 0; alive(pid) && i < 2000; i++) await new Promise((resolve) => setTimeout(resolve, 10))
  return !alive(pid)
}

test('it ends with a process that is killed, or that forgets it', async () => {
  for (const end of ['process.kill(process.pid, "SIGKILL")', '']) {
    const code = `const s = await (await import('limitkv')).start(); process.stdout.write(String(s.pid), () => { ${end} })`
    const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] })
    let pid = ''
    child.stdout.on('data', (data) => { pid += data })
    const [status, signal] = await once(child, 'close')
    expect(end ? signal : status).toBe(end ? 'SIGKILL' : 0)
    expect(await ends(Number(pid))).toBe(true)
  }
})

test('a reply that the helper cannot read ends its connection, not the process', async () => {
  const own = await start()
  await expect(own.do('HELLO', 3)).rejects.toThrow('limitkv sent %')
  await expect(own.do('PING')).rejects.toThrow('closed')
  await own.stop()
})

test('it starts in milliseconds', async () => {
  const took = []
  for (let i = 0; i < 20; i++) {
    const began = performance.now()
    const own = await start()
    took.push(performance.now() - began)
    await own.stop()
  }
  const median = took.sort((a, b) => a - b)[10]
  process.stdout.write(`node: a server starts in ${median.toFixed(1)} ms (median of ${took.length})\n`)
  expect(median).toBeLessThan(5000)
})
